//! The results of a run: the figures of each contender in the same world.

use std::time::Duration;

use redrive_core::task::Reason;

use crate::contender::Contender;
pub use crate::timeline::Bucket;
use crate::world::World;

/// Several contenders in the same world.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The seed: the same seed gives the same results.
    pub seed: u64,
    /// The world of all contenders; its outages in order of time.
    pub world: World,
    /// How wide every story's buckets are.
    pub bucket: Duration,
    /// One story for each contender, in the order in which they were given.
    pub stories: Vec<Story>,
}

/// The results of one contender.
#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    /// The contender.
    pub contender: Contender,
    /// What happened when: one after the other from the beginning, equally many for all contenders of a comparison and
    /// at most [`Story::MAX_BUCKETS`]. Unless another end was set, they end when nearly all calls of every
    /// contender had been made, except of those that go on for [`Story::TOO_LONG`] times as long as all others, and not
    /// before the last outage was over.
    pub buckets: Vec<Bucket>,
    /// What happened after the last bucket, together.
    pub later: Bucket,
    /// The totals.
    pub totals: Totals,
    /// How long the requests that succeeded took, from their arrival.
    pub completion: Completion,
}

impl Story {
    /// The most buckets.
    pub const MAX_BUCKETS: u64 = 300;
    /// The part of every contender's calls that the buckets cover at least, in percent.
    pub const COVERED_PERCENT: u64 = 99;
    /// Who goes on for more than this many times as long as all others does not decide when the buckets end.
    pub const TOO_LONG: u64 = 30;

    /// Whether the buckets leave out more than they do as a rule: this contender went on when they had ended.
    pub fn goes_on(&self) -> bool {
        u64::from(self.later.sends) * 100 > (100 - Self::COVERED_PERCENT) * self.totals.calls
    }
}

/// The totals of a story.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Totals {
    /// Requests, one for each client.
    pub requests: u64,
    /// Calls of the dependency: attempts on the wire.
    pub calls: u64,
    /// Of these, first attempts.
    pub first_attempts: u64,
    /// Of these, retries.
    pub retries: u64,
    /// Requests that succeeded.
    pub succeeded: u64,
    /// Requests that ended as dead letters, by reason; only reasons that occurred.
    pub dead_letters: Vec<(Reason, u64)>,
    /// Requests that got their error at once because the budget was spent.
    pub suppressed: u64,
    /// Requests that got an error at once because the breaker was open.
    pub turned_away: u64,
    /// Requests that a guard held back at least once.
    pub held: u64,
    /// The second with the most calls.
    pub peak: Peak,
    /// The second with the most calls after the end of the last outage; nothing if there was none.
    pub peak_after_outage: Option<Peak>,
    /// Calls while the dependency was down.
    pub calls_while_down: u64,
    /// Calls that were answered 503 because the queue was full.
    pub rejected: u64,
    /// Calls that the dependency served to the end.
    pub served: u64,
    /// Of these, the ones whose caller had timed out before: wasted work.
    pub wasted: u64,
    /// Requests that were open when the last outage ended; nothing if there was none.
    pub backlog: Option<u64>,
    /// From the end of the last outage until 99 % of that backlog had ended; nothing if there was none.
    pub backlog_drained: Option<Duration>,
    /// From the end of the last outage until the last request of all had ended; nothing if all had ended before.
    pub drained: Option<Duration>,
    /// When the last request ended.
    pub ended_at: Duration,
}

impl Totals {
    /// Calls for each request.
    pub fn amplification(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.calls as f64 / self.requests as f64 }
    }

    /// Requests that ended as dead letters, for any reason.
    pub fn dead(&self) -> u64 {
        self.dead_letters.iter().map(|(_, count)| count).sum()
    }
}

/// A second with many calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Peak {
    /// How many.
    pub calls: u32,
    /// When the second began.
    pub at: Duration,
}

/// How long the requests that succeeded took, from their arrival.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Completion {
    /// The fastest, then the longest of the fastest 1 %, 2 %, … 100 %: 101 values, or none if nothing succeeded.
    pub percentiles: Vec<Duration>,
}

impl Completion {
    /// The time that `percent` of them took at most; nothing if nothing succeeded.
    pub fn percentile(&self, percent: usize) -> Option<Duration> {
        self.percentiles.get(percent).copied()
    }

    /// Half of them took at most this.
    pub fn p50(&self) -> Option<Duration> {
        self.percentile(50)
    }

    /// Nine in ten took at most this.
    pub fn p90(&self) -> Option<Duration> {
        self.percentile(90)
    }

    /// All but one in a hundred took at most this.
    pub fn p99(&self) -> Option<Duration> {
        self.percentile(99)
    }

    /// The slowest took this.
    pub fn max(&self) -> Option<Duration> {
        self.percentile(100)
    }

    /// The percentiles of these times in milliseconds, each one of them (nearest rank), none in between.
    pub(crate) fn of(mut took: Vec<u32>) -> Self {
        took.sort_unstable();
        let Some(last) = took.len().checked_sub(1) else { return Completion::default() };
        let rank = |percent: usize| ((percent * took.len()).div_ceil(100)).saturating_sub(1).min(last);
        let at = |percent| Duration::from_millis(u64::from(took[rank(percent)]));
        Completion { percentiles: (0..=100).map(at).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_occurred() {
        let of = |took: &[u32]| Completion::of(took.to_vec());
        let millis = |completion: &Completion, percent| completion.percentile(percent).map(|took| took.as_millis());
        let hundred = of(&(1..=100).rev().collect::<Vec<_>>());
        for (percent, expected) in [(0, 1), (1, 1), (2, 2), (50, 50), (99, 99), (100, 100)] {
            assert_eq!(millis(&hundred, percent), Some(expected), "{percent}");
        }
        let three = of(&[30, 10, 20]);
        for (percent, expected) in [(0, 10), (33, 10), (34, 20), (66, 20), (67, 30), (100, 30)] {
            assert_eq!(millis(&three, percent), Some(expected), "{percent}");
        }
        assert_eq!(three.percentiles.len(), 101);
        assert_eq!(of(&[]).max(), None);
    }
}
