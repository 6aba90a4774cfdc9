//! Scales: from a value to its place.

use crate::elementary::ln;

/// A scale between two places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    kind: Kind,
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// The same distance for the same difference.
    Linear,
    /// The same distance for the same ratio.
    Log,
}

impl Scale {
    /// From `least` at the place `from` to `most` at the place `to`.
    pub(super) fn linear(least: f64, most: f64, from: f64, to: f64) -> Self {
        Scale { kind: Kind::Linear, least, most: if most > least { most } else { least + 1.0 }, from, to }
    }

    /// The same for ratios; both must be above zero.
    pub(super) fn log(least: f64, most: f64, from: f64, to: f64) -> Self {
        let least = least.max(f64::MIN_POSITIVE);
        Scale { kind: Kind::Log, least, most: if most > least { most } else { 2.0 * least }, from, to }
    }

    /// Where a value is; what is beyond an end is at that end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = if value.is_nan() { self.least } else { value.clamp(self.least, self.most) };
        let part = match self.kind {
            Kind::Linear => (value - self.least) / (self.most - self.least),
            Kind::Log => ln(value / self.least) / ln(self.most / self.least),
        };
        self.from + part * (self.to - self.from)
    }

    /// Its largest value.
    pub(super) fn most(&self) -> f64 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_places_and_none_is_beyond_the_ends() {
        let linear = Scale::linear(0.0, 200.0, 300.0, 100.0);
        for (value, expected) in
            [(0.0, 300.0), (50.0, 250.0), (200.0, 100.0), (999.0, 100.0), (-1.0, 300.0), (f64::NAN, 300.0)]
        {
            assert_eq!(linear.at(value), expected, "{value}");
        }
        let log = Scale::log(1.0, 10_000.0, 0.0, 400.0);
        for (value, expected) in [(1.0, 0.0), (10.0, 100.0), (1_000.0, 300.0), (1e9, 400.0), (0.0, 0.0)] {
            assert!((log.at(value) - expected).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn a_scale_of_nothing_is_still_a_scale() {
        for scale in [
            Scale::linear(0.0, 0.0, 0.0, 10.0),
            Scale::linear(5.0, 5.0, 0.0, 10.0),
            Scale::log(3.0, 3.0, 0.0, 10.0),
            Scale::log(0.0, 0.0, 0.0, 10.0),
        ] {
            assert!((0.0..=10.0).contains(&scale.at(5.0)), "{scale:?}");
        }
    }
}
