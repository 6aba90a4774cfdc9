//! The latency of a lane's calls as quantiles, over the last one to two minutes.
//!
//! Two DDSketches take turns: one is filled, the other is of the period before. A sketch has at most [`BINS`] bins and a
//! relative error of 5 %, whatever the number of calls.

use std::time::Duration;

use sketches_ddsketch::{Config, DDSketch};

/// How long a sketch is filled.
const PERIOD: Duration = Duration::from_secs(60);
/// The most bins of a sketch: with an error of 5 % they span from below a millisecond to minutes.
const BINS: u32 = 160;
const ERROR: f64 = 0.05;
/// The shortest duration that is told from zero, in seconds.
const SHORTEST: f64 = 50e-6;

/// The latency of the latest calls.
#[derive(Clone, Default)]
pub(super) struct Quantiles {
    filling: Option<Box<DDSketch>>,
    before: Option<Box<DDSketch>>,
    began: Duration,
}

/// Quantiles of the latency of the latest calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latencies {
    /// How many calls were measured.
    pub calls: u64,
    /// Half of the calls were at most this long.
    pub p50: Duration,
    /// 95 % of the calls were at most this long.
    pub p95: Duration,
    /// 99 % of the calls were at most this long.
    pub p99: Duration,
}

impl Quantiles {
    pub(super) fn record(&mut self, took: Duration, now: Duration) {
        self.advance(now);
        let new = || Box::new(DDSketch::new(Config::new(ERROR, BINS, SHORTEST)));
        self.filling.get_or_insert_with(new).add(took.as_secs_f64());
    }

    /// The quantiles at this moment; `None` if there were no calls lately.
    pub(super) fn latencies(&mut self, now: Duration) -> Option<Latencies> {
        self.advance(now);
        let mut all = self.filling.as_deref().or(self.before.as_deref())?.clone();
        if let (Some(_), Some(before)) = (&self.filling, &self.before)
            && all.merge(before).is_err()
        {
            return None;
        }
        let at = |quantile| {
            let seconds = all.quantile(quantile).ok().flatten()?;
            Duration::try_from_secs_f64(seconds.max(0.0)).ok()
        };
        Some(Latencies { calls: all.count() as u64, p50: at(0.5)?, p95: at(0.95)?, p99: at(0.99)? })
    }

    fn advance(&mut self, now: Duration) {
        let age = now.saturating_sub(self.began);
        if age < PERIOD {
            return;
        }
        self.before = self.filling.take().filter(|_| age < 2 * PERIOD);
        self.began = now;
    }
}

impl std::fmt::Debug for Quantiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quantiles").field("began", &self.began).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn quantiles_are_within_five_percent_over_the_last_minutes() {
        let mut quantiles = Quantiles::default();
        assert_eq!(quantiles.latencies(SECOND), None);
        for millis in 1..=1_000 {
            quantiles.record(Duration::from_millis(millis), SECOND);
        }
        let Latencies { calls, p50, p95, p99 } = quantiles.latencies(SECOND).unwrap();
        assert_eq!(calls, 1_000);
        for (found, expected) in [(p50, 500.0), (p95, 950.0), (p99, 990.0)] {
            let found = found.as_secs_f64() * 1_000.0;
            assert!((found / expected - 1.0).abs() < 0.06, "{found} instead of {expected}");
        }
        quantiles.record(Duration::from_millis(5), 70 * SECOND);
        assert_eq!(quantiles.latencies(70 * SECOND).unwrap().calls, 1_001, "the minute before still counts");
        assert_eq!(quantiles.latencies(135 * SECOND).unwrap().calls, 1);
        assert_eq!(quantiles.latencies(300 * SECOND), None);
    }

    #[test]
    fn memory_is_bounded_whatever_the_durations() {
        let mut quantiles = Quantiles::default();
        for exponent in 0..60 {
            quantiles.record(Duration::from_nanos(1 << exponent), SECOND);
        }
        quantiles.record(Duration::ZERO, SECOND);
        assert_eq!(quantiles.latencies(SECOND).unwrap().calls, 61);
    }
}
