//! The statistics of the reports.

use serde::Serialize;

/// Latencies in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    /// The smallest; below zero means too early.
    pub min_us: i64,
    /// Half of the samples are at or below this.
    pub p50_us: i64,
    /// 99 of 100 samples are at or below this.
    pub p99_us: i64,
    /// The largest.
    pub max_us: i64,
    /// How many samples there were.
    pub samples: usize,
}

impl Latency {
    /// The latencies of `samples`, in any order.
    pub fn of(mut samples: Vec<i64>) -> Self {
        samples.sort_unstable();
        Latency {
            min_us: samples.first().copied().unwrap_or_default(),
            p50_us: percentile(&samples, 0.50),
            p99_us: percentile(&samples, 0.99),
            max_us: samples.last().copied().unwrap_or_default(),
            samples: samples.len(),
        }
    }
}

/// The nearest-rank percentile of sorted samples; zero if there are none.
fn percentile(sorted: &[i64], part: f64) -> i64 {
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// A figure over several rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The median (of an even number: the mean of the two in the middle).
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// The spread of one value per round.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else {
            return Spread::default();
        };
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Spread { median, min, max }
    }

    /// The ratios of values that were measured in the same rounds: a disturbance of a round affects both.
    pub fn ratio(of: &[f64], to: &[f64]) -> Self {
        Spread::of(of.iter().zip(to).map(|(of, to)| of / to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let latency = Latency::of((1..=1_000).rev().collect());
        assert_eq!(latency, Latency { min_us: 1, p50_us: 500, p99_us: 990, max_us: 1_000, samples: 1_000 });
        assert_eq!(Latency::of(vec![7]), Latency { min_us: 7, p50_us: 7, p99_us: 7, max_us: 7, samples: 1 });
        assert_eq!(Latency::of(vec![]), Latency::default());
    }

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        // The machine was twice as slow in the second round: that does not change the ratio.
        assert_eq!(Spread::ratio(&[70.0, 35.0], &[100.0, 50.0]), Spread { median: 0.7, min: 0.7, max: 0.7 });
        assert_eq!(Spread::of([1.0, 9.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 9.0 });
        assert_eq!(Spread::of([4.0, 2.0]), Spread { median: 3.0, min: 2.0, max: 4.0 });
    }
}
