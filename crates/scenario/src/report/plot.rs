//! The plot: the part of a picture between the axes, with what all pictures over time have in common.

use std::time::Duration;

use super::labels::apart;
use super::number::{duration, short};
use super::picture::{Anchor, Picture, SMALL};
use super::scale::Scale;
use super::text::width;
use crate::world::Outage;

/// Where the plot is in its picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

/// Room at the left for the numbers of an axis.
pub(super) const LEFT: f64 = 46.0;
/// Room at the top for the unit, and below it for what is written above the plot.
pub(super) const TOP: f64 = 30.0;
/// Room at the bottom for the numbers of an axis.
pub(super) const BOTTOM: f64 = 22.0;
/// Between two numbers of an axis.
const BETWEEN: f64 = 10.0;
/// From the plot's edge to the writing beside it.
const OFF: f64 = 6.0;

impl Plot {
    /// Within a picture, with this much room at the right.
    pub(super) fn within(picture: &Picture, right: f64) -> Self {
        let size = picture.size;
        Plot { left: LEFT, top: TOP, right: size.width - right, bottom: size.height - BOTTOM }
    }

    /// How many steps of an axis go beside each other, when each takes so much room.
    pub(super) fn columns(&self, each: f64) -> u32 {
        (((self.right - self.left) / each) as u32).max(2)
    }

    /// A scale along the bottom.
    pub(super) fn across(&self, most: f64) -> Scale {
        Scale::linear(0.0, most, self.left, self.right)
    }

    /// A scale up the left side.
    pub(super) fn up(&self, most: f64) -> Scale {
        Scale::linear(0.0, most, self.bottom, self.top)
    }

    /// The axis at the left: its unit above, a thin line across at each value.
    pub(super) fn left_axis(&self, picture: &mut Picture, scale: &Scale, unit: &str, ticks: &[(f64, String)]) {
        picture.text("tick", Anchor::Start, (0.0, SMALL), unit);
        for (value, label) in ticks {
            let y = scale.at(*value);
            picture.line(if *value == 0.0 { "base" } else { "grid" }, (self.left, y), (self.right, y));
            picture.text("tick", Anchor::End, (self.left - OFF, y + 0.35 * SMALL), label);
        }
    }

    /// The axis at the bottom; a number that would touch the one before it is left out.
    pub(super) fn bottom_axis(&self, picture: &mut Picture, scale: &Scale, ticks: &[(f64, String)]) {
        let wanted = |(value, label): &(f64, String)| (scale.at(*value), width(label, SMALL));
        let places = apart(&ticks.iter().map(wanted).collect::<Vec<_>>(), BETWEEN, self.left - OFF, picture.size.width);
        for ((value, label), place) in ticks.iter().zip(places) {
            let x = scale.at(*value);
            picture.line("mark", (x, self.bottom), (x, self.bottom + 4.0));
            if let Some(middle) = place {
                picture.text("tick", Anchor::Middle, (middle, self.bottom + 4.0 + SMALL), label);
            }
        }
    }

    /// The outages, shaded from top to bottom, with their times above.
    pub(super) fn outages(&self, picture: &mut Picture, scale: &Scale, outages: &[Outage]) {
        let ends = |outage: &Outage| (scale.at(outage.from.as_secs_f64()), scale.at(outage.to.as_secs_f64()));
        for outage in outages {
            let (from, to) = ends(outage);
            picture.rectangle("outage", (from, self.top), ((to - from).max(1.0), self.bottom - self.top));
            picture.line("outage-edge", (from, self.top), (to.max(from + 1.0), self.top));
        }
        let middles: Vec<_> = outages.iter().map(|outage| f64::midpoint(ends(outage).0, ends(outage).1)).collect();
        let whole = |outage: &Outage| format!("down {}–{}", duration(outage.from), duration(outage.to));
        let place = |labels: &[String]| {
            let wanted: Vec<_> = middles.iter().copied().zip(labels.iter().map(|label| width(label, SMALL))).collect();
            apart(&wanted, BETWEEN, self.left, picture.size.width)
        };
        let mut labels: Vec<_> = outages.iter().map(whole).collect();
        let mut places = place(&labels);
        // All with their times or none: a time above one of two outages looks as if it were that of both.
        if places.iter().any(Option::is_none) {
            labels = vec!["down".to_owned(); outages.len()];
            places = place(&labels);
        }
        for (label, place) in labels.iter().zip(places) {
            if let Some(middle) = place {
                picture.text("outage-label", Anchor::Middle, (middle, self.top - OFF), label);
            }
        }
    }
}

/// Counts as an axis has them.
pub(super) fn count_labels(ticks: &[f64]) -> Vec<(f64, String)> {
    ticks.iter().map(|tick| (*tick, short(*tick))).collect()
}

/// Times as an axis has them, in seconds.
pub(super) fn time_labels(ticks: &[Duration]) -> Vec<(f64, String)> {
    let label = |tick: &Duration| if tick.is_zero() { "0".to_owned() } else { duration(*tick) };
    ticks.iter().map(|tick| (tick.as_secs_f64(), label(tick))).collect()
}
