//! Counts of commits: how long they took, and how many calls each made durable. For metrics only; no decision uses them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of durations, in seconds.
const SECONDS: [f64; 14] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// Upper bounds of calls per commit.
const CALLS: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0];

/// Counts commits as they end, from any thread.
#[derive(Debug, Default)]
pub struct CommitCounter {
    /// By upper bound; the last one counts what lies above.
    seconds: [AtomicU64; SECONDS.len() + 1],
    nanos: AtomicU64,
    calls: [AtomicU64; CALLS.len() + 1],
    calls_in_all: AtomicU64,
}

/// The commits of a store so far.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitCounts {
    /// Their durations in seconds.
    pub seconds: CommitHistogram,
    /// How many calls each held.
    pub calls: CommitHistogram,
}

/// Numbers in buckets.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitHistogram {
    /// Each bucket's upper bound and count, not cumulative; the last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
    /// The sum of all numbers.
    pub sum: f64,
}

impl CommitCounter {
    /// Counts a commit that made this many calls durable.
    pub fn count(&self, took: Duration, calls: usize) {
        let calls = calls as u64;
        add(&self.seconds, &SECONDS, took.as_secs_f64());
        self.nanos.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        add(&self.calls, &CALLS, calls as f64);
        self.calls_in_all.fetch_add(calls, Ordering::Relaxed);
    }

    /// The commits so far.
    pub fn counts(&self) -> CommitCounts {
        let nanos = self.nanos.load(Ordering::Relaxed) as f64;
        CommitCounts {
            seconds: CommitHistogram { buckets: read(&self.seconds, &SECONDS), sum: nanos / 1e9 },
            calls: CommitHistogram {
                buckets: read(&self.calls, &CALLS),
                sum: self.calls_in_all.load(Ordering::Relaxed) as f64,
            },
        }
    }
}

fn add(counts: &[AtomicU64], bounds: &[f64], value: f64) {
    if let Some(count) = counts.get(bounds.partition_point(|bound| *bound < value)) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

fn read(counts: &[AtomicU64], bounds: &[f64]) -> Vec<(f64, u64)> {
    let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
    bounds.iter().copied().chain([f64::INFINITY]).zip(counts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_counts_in_the_buckets_of_its_duration_and_its_calls() {
        let counter = CommitCounter::default();
        counter.count(Duration::from_micros(250), 1);
        counter.count(Duration::from_millis(2), 3);
        counter.count(Duration::from_secs(11), 2_000);
        let counts = counter.counts();
        let full = |histogram: &CommitHistogram| {
            let full = histogram.buckets.iter().filter(|(_, count)| *count > 0);
            full.copied().collect::<Vec<_>>()
        };
        assert_eq!(full(&counts.seconds), [(0.000_25, 1), (0.002_5, 1), (f64::INFINITY, 1)]);
        assert_eq!(full(&counts.calls), [(1.0, 1), (4.0, 1), (f64::INFINITY, 1)]);
        assert_eq!((counts.seconds.sum, counts.calls.sum), (11.002_25, 2_004.0));
    }
}
