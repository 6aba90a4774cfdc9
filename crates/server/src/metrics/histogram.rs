//! Durations and sizes, counted in buckets with fixed bounds.

use std::time::Duration;

/// Upper bounds in seconds for what takes milliseconds to seconds: attempts, commits, the way from due to the wire.
pub(super) const SHORT: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// Upper bounds in seconds for waits and ages: from a tenth of a second to a day.
pub(super) const LONG: &[f64] =
    &[0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0];

/// Counts of observations by bucket. Not cumulative.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    /// One count for each bound, and one for what lies above the last.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        Histogram { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    pub(super) fn observe(&mut self, duration: Duration) {
        self.observe_value(duration.as_secs_f64());
    }

    pub(super) fn observe_value(&mut self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum += value;
    }

    pub(super) fn sum(&self) -> f64 {
        self.sum
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Each bucket's upper bound and count; the last bound is infinite.
    pub(super) fn buckets(&self) -> Vec<(f64, u64)> {
        self.bounds.iter().copied().chain([f64::INFINITY]).zip(self.counts.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        for value in [0.0, 1.0, 1.1, 2.0, 2.1, 1e9] {
            histogram.observe_value(value);
        }
        assert_eq!(histogram.buckets(), [(1.0, 2), (2.0, 2), (f64::INFINITY, 2)]);
        assert_eq!((histogram.count(), histogram.sum()), (6, 1_000_000_006.2));
    }

    #[test]
    fn bounds_grow() {
        for bounds in [SHORT, LONG] {
            assert!(bounds.is_sorted_by(|one, next| one < next), "{bounds:?}");
        }
    }
}
