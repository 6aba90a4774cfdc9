//! Curves: all contenders in one plot, each with its name at its end.

use super::labels::spread;
use super::number::place;
use super::palette::letter;
use super::picture::{Anchor, NORMAL, Picture};
use super::plot::Plot;
use super::text::width;

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
    /// Where it ends.
    pub(super) end: (f64, f64),
}

/// Between two labels.
const APART: f64 = 19.0;
/// The size of the letter's circle.
const RADIUS: f64 = 8.0;
/// From the plot to the letters.
const OFF: f64 = 26.0;

/// The room that the names need at the right of a plot, in a picture as wide as this.
pub(super) fn room(width: f64) -> f64 {
    if width < 500.0 { 118.0 } else { 236.0 }
}

/// Draws them all, the first one on top.
pub(super) fn draw(picture: &mut Picture, plot: &Plot, curves: &[Curve<'_>]) {
    for curve in curves.iter().rev() {
        picture.path(&format!("curve halo s{}", curve.number), &curve.path);
        picture.path(&format!("curve s{}", curve.number), &curve.path);
    }
    let ends: Vec<_> = curves.iter().map(|curve| curve.end.1).collect();
    let heights = spread(&ends, APART, plot.top + RADIUS, plot.bottom - RADIUS);
    for (curve, height) in curves.iter().zip(heights) {
        label(picture, plot, curve, height);
    }
}

/// The end of a curve, the way from there to its name, and the name.
fn label(picture: &mut Picture, plot: &Plot, curve: &Curve<'_>, height: f64) {
    let (x, y) = curve.end;
    let class = format!("s{}", curve.number);
    let [from, at, edge, aside, to] = [x, y, plot.right + 4.0, plot.right + 14.0, height].map(place);
    let there = place(plot.right + OFF - RADIUS);
    picture.path(&format!("leader {class}"), &format!("M{from} {at}H{edge}L{aside} {to}H{there}"));
    picture.circle(&format!("end {class}"), (x, y), 3.0);
    let badge = plot.right + OFF;
    picture.circle(&format!("badge {class}"), (badge, height), RADIUS);
    picture.text("letter", Anchor::Middle, (badge, height + 4.0), &letter(curve.number).to_string());
    let name = badge + RADIUS + 5.0;
    let baseline = height + 0.35 * NORMAL;
    let remark = width(&curve.remark, NORMAL);
    let room = picture.size.width - name;
    let is_narrow = room < 2.0 * remark;
    let left = if curve.remark.is_empty() || is_narrow { room } else { room - remark - NORMAL };
    picture.name("name", (name, baseline), curve.name, left);
    if !curve.remark.is_empty() && !is_narrow {
        picture.text("remark", Anchor::End, (picture.size.width, baseline), &curve.remark);
    }
}
