//! How long the dependency works on a call.

use std::time::Duration;

use crate::chance::{Chance, Purpose};
use crate::elementary::{exp, ln};
use crate::world::{Invalid, at_most};

/// How long the dependency works on a call that it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latencies {
    /// Always the same.
    Constant(Duration),
    /// Log-normal, as the latencies of most services nearly are: many near the median, a long tail.
    LogNormal {
        /// Half of the calls take longer.
        median: Duration,
        /// One in a hundred takes longer.
        p99: Duration,
    },
}

/// The 99th percentile of the standard normal distribution.
const NORMAL_P99: f64 = 2.326_347_874_040_841;

impl Latencies {
    /// No call takes longer: the longest attempt timeout that a policy can have.
    pub const LONGEST: Duration = Duration::from_secs(15 * 60);

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        match *self {
            Latencies::Constant(latency) => at_most("the latency", latency, Self::LONGEST),
            Latencies::LogNormal { median, p99 } if median > p99 || median.is_zero() => {
                Err(Invalid::Latency { median, p99 })
            }
            Latencies::LogNormal { p99, .. } => at_most("the latency's 99th percentile", p99, Self::LONGEST),
        }
    }

    /// The distribution to draw from.
    pub(crate) fn distribution(&self) -> LatencyDistribution {
        match *self {
            Latencies::Constant(latency) => LatencyDistribution { median: latency.as_secs_f64(), sigma: 0.0 },
            Latencies::LogNormal { median, p99 } => {
                let (median, p99) = (median.as_secs_f64(), p99.as_secs_f64());
                LatencyDistribution { median, sigma: ln(p99 / median) / NORMAL_P99 }
            }
        }
    }
}

/// A latency distribution to draw from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LatencyDistribution {
    /// In seconds.
    median: f64,
    /// The spread of the logarithm; zero for a constant.
    sigma: f64,
}

impl LatencyDistribution {
    /// The latency of this client's attempt, in nanoseconds.
    pub(crate) fn draw(&self, chance: &Chance, client: u32, attempt: u32) -> u64 {
        let factor = if self.sigma == 0.0 {
            1.0
        } else {
            exp(self.sigma * chance.normal(Purpose::Latency, u64::from(client), u64::from(attempt)))
        };
        ((self.median * factor).min(Latencies::LONGEST.as_secs_f64()) * 1e9) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_normal_latency_has_its_median_and_its_99th_percentile() {
        let latencies =
            Latencies::LogNormal { median: Duration::from_millis(50), p99: Duration::from_millis(400) }.distribution();
        let chance = Chance::new(3);
        let mut drawn: Vec<_> = (0..100_000).map(|client| latencies.draw(&chance, client, 1) / 1_000).collect();
        drawn.sort_unstable();
        let (median, p99) = (drawn[50_000], drawn[99_000]);
        assert!((49_000..51_000).contains(&median) && (385_000..415_000).contains(&p99), "{median} µs, {p99} µs");
    }

    #[test]
    fn a_constant_latency_is_what_it_says() {
        let latencies = Latencies::Constant(Duration::from_micros(1_500)).distribution();
        assert_eq!(latencies.draw(&Chance::new(3), 9, 4), 1_500_000);
    }

    #[test]
    fn no_draw_is_longer_than_the_longest() {
        let tail = Latencies::LogNormal { median: Duration::from_nanos(1), p99: Latencies::LONGEST }.distribution();
        let longest = (0..10_000).map(|client| tail.draw(&Chance::new(3), client, 1)).max();
        assert_eq!(longest, Some(900_000_000_000));
    }
}
