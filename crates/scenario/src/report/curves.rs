//! Curves: all contenders in one plot, each with its name at its end.

use super::labels::spread;
use super::number::place;
use super::palette::letter;
use super::picture::{Anchor, NORMAL, Picture};
use super::plot::Plot;
use super::text;

/// One contender's curve.
pub(super) struct Curve<'a> {
    /// Which contender's, from 0.
    pub(super) number: usize,
    /// Its name.
    pub(super) name: &'a str,
    /// What else is said at its end.
    pub(super) remark: String,
    /// Its path.
    pub(super) path: String,
    /// Places on it, the last one at its end.
    pub(super) places: Vec<(f64, f64)>,
}

/// Between two labels.
const APART: f64 = 19.0;
/// The size of the letter's circle.
const RADIUS: f64 = 8.0;
/// How far from all others a place must be for a letter.
const FAR: f64 = 2.2 * RADIUS;
/// From the plot to the middle of the letters.
const OFF: f64 = 26.0;
/// From the plot to the names.
const NAME: f64 = OFF + RADIUS + 5.0;
/// The most room for labels.
const WIDEST: f64 = 320.0;
/// More places than these get no marks: they would be a line by themselves.
const MARKS: usize = 30;

/// Where a curve has marks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Marked {
    /// At each place that was measured.
    Everywhere,
    /// At its end.
    AtTheEnd,
}

/// The room that the labels need at the right of a plot, in a picture as wide as this. Where there is little, they are
/// only letters, and the page has the names below.
pub(super) fn room<'a>(width: f64, labels: impl Iterator<Item = (&'a str, String)>) -> f64 {
    let beside = |(name, remark): (&str, String)| text::width(name, NORMAL) + NORMAL + text::width(&remark, NORMAL);
    if is_narrow(width) { OFF + RADIUS } else { (NAME + labels.map(beside).fold(0.0, f64::max)).min(WIDEST) }
}

fn is_narrow(width: f64) -> bool {
    width < 500.0
}

/// Draws them all, the first one at the bottom: it has no dashes, and is seen through the gaps of the others. With a
/// mark at each place, if there are few of them.
pub(super) fn draw(picture: &mut Picture, plot: &Plot, curves: &[Curve<'_>], marked: Marked) {
    for curve in curves {
        picture.path(&format!("curve s{}", curve.number), &curve.path);
    }
    for curve in curves {
        let first = match marked {
            Marked::Everywhere if curve.places.len() <= MARKS => 0,
            _ => curve.places.len().saturating_sub(1),
        };
        for place in &curve.places[first..] {
            picture.circle(&format!("end s{}", curve.number), *place, 3.0);
        }
    }
    let ends: Vec<_> = curves.iter().map(|curve| end(plot, curve).1).collect();
    let heights = spread(&ends, APART, plot.top + RADIUS, plot.bottom - RADIUS);
    for (curve, height) in curves.iter().zip(heights) {
        label(picture, plot, curve, height);
    }
    for (curve, place) in curves.iter().zip(aside(plot, curves)) {
        if let Some(place) = place {
            badge(picture, curve.number, place);
        }
    }
}

/// The way from the end of a curve to its label, and the label.
fn label(picture: &mut Picture, plot: &Plot, curve: &Curve<'_>, height: f64) {
    let (x, y) = end(plot, curve);
    let [from, at, edge, aside, to] = [x, y, plot.right + 4.0, plot.right + 14.0, height].map(place);
    let there = place(plot.right + OFF - RADIUS);
    picture.path(&format!("leader s{}", curve.number), &format!("M{from} {at}H{edge}L{aside} {to}H{there}"));
    badge(picture, curve.number, (plot.right + OFF, height));
    if is_narrow(picture.size.width) {
        return;
    }
    let (name, baseline) = (plot.right + NAME, height + 0.35 * NORMAL);
    let room = picture.size.width - name - text::width(&curve.remark, NORMAL) - NORMAL;
    picture.name("name", (name, baseline), curve.name, room);
    picture.text("remark", Anchor::End, (picture.size.width, baseline), &curve.remark);
}

/// A contender's letter.
fn badge(picture: &mut Picture, number: usize, (x, y): (f64, f64)) {
    picture.circle(&format!("badge s{number}"), (x, y), RADIUS);
    picture.text("letter", Anchor::Middle, (x, y + 4.0), &letter(number).to_string());
}

fn end(plot: &Plot, curve: &Curve<'_>) -> (f64, f64) {
    curve.places.last().copied().unwrap_or((plot.left, plot.bottom))
}

/// For each curve the place on it that is the furthest from all others, if that is far enough to put its letter there.
fn aside(plot: &Plot, curves: &[Curve<'_>]) -> Vec<Option<(f64, f64)>> {
    let is_inside = |(x, y): (f64, f64)| {
        let border = 2.0 * RADIUS;
        x > plot.left + border && x < plot.right - border && y > plot.top + border && y < plot.bottom - border
    };
    let from_others = |number: usize, (x, y): (f64, f64)| {
        let others = curves.iter().enumerate().filter(|(other, _)| *other != number);
        let pieces = others.flat_map(|(_, curve)| curve.places.windows(2));
        pieces.map(|piece| distance((x, y), piece[0], piece[1])).fold(f64::INFINITY, f64::min)
    };
    let furthest = |(number, curve): (usize, &Curve<'_>)| {
        // Not at its end: its label is there already.
        let last = end(plot, curve).0 - 3.0 * RADIUS;
        let places = curve.places.iter().copied().filter(|place| is_inside(*place) && place.0 < last);
        let distances = places.map(|place| (from_others(number, place), place));
        let (distance, place) = distances.max_by(|one, other| one.0.total_cmp(&other.0))?;
        (distance > FAR).then_some(place)
    };
    curves.iter().enumerate().map(furthest).collect()
}

/// How far a place is from the straight line between two others.
fn distance((x, y): (f64, f64), from: (f64, f64), to: (f64, f64)) -> f64 {
    let (across, up) = (to.0 - from.0, to.1 - from.1);
    let length = across * across + up * up;
    let along = if length > 0.0 { (((x - from.0) * across + (y - from.1) * up) / length).clamp(0.0, 1.0) } else { 0.0 };
    let (off, over) = (from.0 + along * across - x, from.1 + along * up - y);
    (off * off + over * over).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(number: usize, places: &[(f64, f64)]) -> Curve<'static> {
        Curve { number, name: "", remark: String::new(), path: String::new(), places: places.to_vec() }
    }

    #[test]
    fn a_letter_stands_where_its_curve_is_the_furthest_from_all_others() {
        let plot = Plot { left: 0.0, top: 0.0, right: 400.0, bottom: 200.0 };
        let low = curve(0, &[(20.0, 180.0), (100.0, 150.0), (200.0, 150.0), (390.0, 180.0)]);
        let high = curve(1, &[(20.0, 180.0), (100.0, 140.0), (200.0, 60.0), (390.0, 180.0)]);
        let same = curve(2, &[(20.0, 180.0), (390.0, 180.0)]);
        assert_eq!(aside(&plot, &[low, high]), [Some((200.0, 150.0)), Some((200.0, 60.0))]);
        let again = curve(3, &same.places);
        assert_eq!(aside(&plot, &[same, again]), [None, None], "one on the other");
    }

    #[test]
    fn a_place_is_as_far_from_a_line_as_from_its_nearest_point() {
        for (place, expected) in [((5.0, 3.0), 3.0), ((-4.0, 3.0), 5.0), ((10.0, -2.0), 2.0)] {
            assert_eq!(distance(place, (0.0, 0.0), (10.0, 0.0)), expected);
        }
        assert_eq!(distance((3.0, 4.0), (0.0, 0.0), (0.0, 0.0)), 5.0);
    }
}
