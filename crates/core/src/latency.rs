//! The expected duration of a dependency's calls, to decide whether another attempt fits before the deadline.
//!
//! An exponentially weighted mean with weight 1/8, as TCP smooths its round trips: one slow call moves it by an eighth,
//! a lasting change is most of the way in after a dozen calls, and it needs one integer per lane. A percentile would
//! need a histogram, and would be wrong in the costly direction: ending tasks early because one call in a hundred is
//! slow.
//!
//! The mean is kept in eighths of a nanosecond, so that integer division loses nothing that adds up over many samples.

use std::time::Duration;

/// How long an estimate is valid: it is forgotten after this time without a call.
pub const ESTIMATE_FOR: Duration = Duration::from_secs(30);

/// A smoothed estimate of the duration of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Latency {
    /// Eight times the mean, in nanoseconds; nothing before the first sample.
    eighths: Option<u64>,
}

impl Latency {
    /// A longer call counts as this long. No attempt may take nearly as long, and eight times this is far from
    /// overflow.
    pub const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

    /// Records a call that took `took`.
    pub fn record(&mut self, took: Duration) {
        let sample = nanos(took.min(Self::LONGEST));
        self.eighths = Some(match self.eighths {
            None => sample * 8,
            Some(eighths) => eighths - eighths / 8 + sample,
        });
    }

    /// The expected duration of the next call; zero before the first sample.
    pub fn estimate(&self) -> Duration {
        Duration::from_nanos(self.eighths.unwrap_or(0) / 8)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(samples: impl IntoIterator<Item = Duration>) -> Duration {
        let mut latency = Latency::default();
        samples.into_iter().for_each(|took| latency.record(took));
        latency.estimate()
    }

    #[test]
    fn nothing_recorded_is_estimated_at_zero() {
        assert_eq!(after([]), Duration::ZERO);
    }

    #[test]
    fn the_first_sample_is_the_estimate_and_each_further_one_moves_it_by_an_eighth() {
        let millis = |samples: &[u64]| after(samples.iter().copied().map(Duration::from_millis));
        assert_eq!(millis(&[80]), Duration::from_millis(80));
        assert_eq!(millis(&[80, 160]), Duration::from_millis(90));
        assert_eq!(millis(&[80, 160, 160]), Duration::from_micros(98_750));
        assert_eq!(millis(&[80, 0]), Duration::from_millis(70));
        assert_eq!(millis(&[0, 80]), Duration::from_millis(10));
    }

    #[test]
    fn a_lasting_change_is_arrived_at_exactly_from_both_sides() {
        let lasting = Duration::from_nanos(123_456_789);
        for first in [Duration::ZERO, Duration::from_nanos(123_456_788), Duration::MAX] {
            let samples = std::iter::once(first).chain(std::iter::repeat_n(lasting, 400));
            assert_eq!(after(samples), lasting, "from {first:?}");
        }
    }

    #[test]
    fn endless_calls_do_not_overflow() {
        assert_eq!(after(std::iter::repeat_n(Duration::MAX, 1_000)), Latency::LONGEST);
    }
}
