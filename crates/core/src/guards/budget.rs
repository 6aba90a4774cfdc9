//! Retry budget: bounds the retries to one dependency.
//!
//! A limit of attempts per task does not protect a dependency: when it is down, every task fails, and five retries each
//! make six times the load when it can bear the least. A budget ties all of a dependency's retries to its *first*
//! attempts: a fifth as many may be sent, and a few more, so that a lane with little traffic can retry at all. A
//! failing call here and there is retried as if there were no budget; a dependency that is down sees its usual load and
//! a fifth.
//!
//! The promise is exact: whenever a retry is granted, the retries of the 30 seconds up to that moment, itself included,
//! are at most 10 + 20 % of the first attempts of those 30 seconds. The window is kept in buckets of a second, so a
//! bucket that lies half within it counts where that is on the safe side: its retries do, its first attempts do not.
//! There is no division, so nothing is rounded.
//!
//! A value, not a task: callers pass `now` in, nothing sleeps here. Retries are attempts from the second on, hedges,
//! and sends after a crash. Not here: what happens to a task whose retry has to wait (a durable one waits without
//! losing an attempt, a synchronous call gets its error at once), and how long a task waits anyway (`backoff`).

use std::time::Duration;

use crate::guards::window::{self, Window};
use crate::time::Timestamp;

/// How large a budget is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How far back first attempts and retries count.
    pub window: Duration,
    /// The steps in which they are forgotten; the window has at most [`Settings::MAX_BUCKETS`] of them.
    pub bucket: Duration,
    /// Retries per window that are granted at any traffic.
    pub floor: u32,
    /// Further retries for every hundred first attempts in the window.
    pub percent: u32,
}

impl Settings {
    /// A window of more buckets is cut down to these.
    pub const MAX_BUCKETS: usize = window::MAX_BUCKETS - 1;

    /// How many buckets a window takes, rounded up.
    fn buckets(&self) -> usize {
        window::buckets_of(self.window, self.bucket).clamp(1, Self::MAX_BUCKETS)
    }
}

/// Over a rolling 30 s: 10 retries, and 20 % of the first attempts.
impl Default for Settings {
    fn default() -> Self {
        Settings { window: Duration::from_secs(30), bucket: Duration::from_secs(1), floor: 10, percent: 20 }
    }
}

/// The retries of one dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    settings: Settings,
    /// First attempts and retries, in one bucket more than the window has: the one that is half out of it.
    window: Window<2>,
}

/// The budget is spent: there is no retry left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// When the oldest bucket is forgotten: not before then is there more, unless first attempts are made.
    pub ask_again_at: Timestamp,
}

const FIRSTS: usize = 0;
const RETRIES: usize = 1;

impl Budget {
    /// An unused budget.
    pub fn new(settings: Settings) -> Self {
        Budget { settings, window: Window::new(settings.bucket, settings.buckets() + 1) }
    }

    /// Counts a first attempt.
    pub fn first(&mut self, now: Timestamp) {
        self.window.advance(now);
        self.window.count(FIRSTS);
    }

    /// Takes one retry, if there is one left.
    pub fn try_retry(&mut self, now: Timestamp) -> Result<(), Spent> {
        if let Some(spent) = self.spent(now) {
            return Err(spent);
        }
        self.window.count(RETRIES);
        Ok(())
    }

    /// Whether there is no retry left, without taking one.
    pub fn spent(&mut self, now: Timestamp) -> Option<Spent> {
        (self.left(now) == 0).then(|| Spent { ask_again_at: self.window.next_edge() })
    }

    /// How many retries could be taken now.
    pub fn left(&mut self, now: Timestamp) -> u64 {
        self.window.advance(now);
        let hundredths = self.hundredths().saturating_sub(100 * u128::from(self.window.sums()[RETRIES]));
        u64::try_from(hundredths / 100).unwrap_or(u64::MAX)
    }

    /// The part of the budget that is used: 0 is none of it, 1 is all. It may be above 1 for a while, when first
    /// attempts that retries were granted for have been forgotten before them.
    pub fn utilization(&mut self, now: Timestamp) -> f64 {
        self.window.advance(now);
        match self.hundredths() {
            0 => 1.0,
            hundredths => 100.0 * self.window.sums()[RETRIES] as f64 / hundredths as f64,
        }
    }

    /// What is granted for the window, in hundredths of a retry.
    fn hundredths(&self) -> u128 {
        let firsts = self.window.sums()[FIRSTS] - u64::from(self.window.oldest()[FIRSTS]);
        100 * u128::from(self.settings.floor) + u128::from(self.settings.percent) * u128::from(firsts)
    }
}

impl Default for Budget {
    fn default() -> Self {
        Budget::new(Settings::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn after_firsts(settings: Settings, firsts: u32, now: u64) -> Budget {
        let mut budget = Budget::new(settings);
        (0..firsts).for_each(|_| budget.first(at(now)));
        budget
    }

    /// How many retries are granted in one go.
    fn granted(budget: &mut Budget, now: u64) -> usize {
        std::iter::repeat_with(|| budget.try_retry(at(now))).take_while(Result::is_ok).take(100_000).count()
    }

    #[test]
    fn the_defaults_are_ten_and_a_fifth_of_the_first_attempts_over_thirty_seconds() {
        let second = Duration::from_secs(1);
        assert_eq!(Settings::default(), Settings { window: 30 * second, bucket: second, floor: 10, percent: 20 });
        assert_eq!(Settings::default().buckets(), 30);
        // first attempts, retries granted
        for (firsts, expected) in [(0, 10), (1, 10), (4, 10), (5, 11), (9, 11), (10, 12), (100, 30), (10_000, 2_010)] {
            let mut budget = after_firsts(Settings::default(), firsts, 5_000);
            assert_eq!(budget.left(at(5_000)), expected as u64, "{firsts} first attempts");
            assert_eq!(granted(&mut budget, 5_000), expected, "{firsts} first attempts");
            assert_eq!(budget.left(at(5_000)), 0, "{firsts} first attempts");
        }
    }

    #[test]
    fn what_does_not_make_a_whole_retry_is_not_granted() {
        // floor, percent, first attempts, retries granted
        let cases =
            [(0, 20, 4, 0), (0, 20, 5, 1), (0, 33, 3, 0), (0, 33, 4, 1), (0, 0, 9, 0), (1, 99, 1, 1), (1, 99, 2, 2)];
        for (floor, percent, firsts, expected) in cases {
            let mut budget = after_firsts(Settings { floor, percent, ..Settings::default() }, firsts, 0);
            assert_eq!(granted(&mut budget, 0), expected, "{floor} + {percent} % of {firsts}");
        }
    }

    #[test]
    fn whoever_finds_it_spent_is_told_when_to_ask_again() {
        let mut budget = Budget::default();
        assert_eq!(granted(&mut budget, 7_300), 10);
        for (now, again) in [(7_300, 8_000), (7_999, 8_000), (8_000, 9_000), (20_001, 21_000)] {
            assert_eq!(budget.try_retry(at(now)), Err(Spent { ask_again_at: at(again) }), "at {now}");
        }
    }

    #[test]
    fn a_retry_is_forgotten_when_its_whole_bucket_is_out_of_the_window() {
        // The last retry of the bucket may have been at 7.999: at 37.999 that is 30 s ago, at 38 s more than that.
        for (now, left) in [(37_000, 0), (37_999, 0), (38_000, 10)] {
            let mut budget = Budget::default();
            assert_eq!(granted(&mut budget, 7_300), 10);
            assert_eq!(budget.left(at(now)), left, "at {now}");
        }
    }

    #[test]
    fn a_first_attempt_is_forgotten_when_a_part_of_its_bucket_is_out_of_the_window() {
        for (now, left) in [(36_999, 30), (37_000, 10)] {
            let mut budget = after_firsts(Settings::default(), 100, 7_300);
            assert_eq!(budget.left(at(now)), left, "at {now}");
        }
    }

    #[test]
    fn utilization_is_the_part_that_is_used() {
        let mut budget = after_firsts(Settings::default(), 50, 0);
        assert_eq!(budget.utilization(at(0)), 0.0);
        for expected in [0.05, 0.1, 0.15] {
            budget.try_retry(at(0)).unwrap();
            assert!((budget.utilization(at(0)) - expected).abs() < 1e-12, "{budget:?}");
        }
        granted(&mut budget, 29_999);
        assert_eq!(budget.utilization(at(29_999)), 1.0);
        assert_eq!(budget.utilization(at(30_000)), 2.0, "the first attempts are forgotten, the retries not yet");
        assert_eq!(budget.utilization(at(90_000)), 0.0);
        let mut nothing = Budget::new(Settings { floor: 0, ..Settings::default() });
        assert_eq!(nothing.utilization(at(0)), 1.0);
    }

    /// The promise, checked against a list of everything that happened.
    #[test]
    fn no_grant_breaks_the_promise_over_the_window_that_ends_with_it() {
        let mut budget = Budget::default();
        let (mut firsts, mut retries): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        let (mut now, mut state): (u64, u64) = (1_000_000, 42);
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let draw = state >> 33;
            now += [0, 1, 7, 40, 400, 1_000, 5_000][usize::try_from(draw % 7).unwrap()] / (1 + draw / 7 % 3);
            if draw.is_multiple_of(3) {
                budget.first(at(now));
                firsts.push(now);
            } else if budget.try_retry(at(now)).is_ok() {
                retries.push(now);
                let within = |times: &[u64]| times.iter().rev().take_while(|time| **time + 30_000 > now).count();
                assert!(100 * within(&retries) <= 1_000 + 20 * within(&firsts), "at {now}");
            }
        }
        assert!(retries.len() > 1_000 && firsts.len() > 1_000, "{} {}", retries.len(), firsts.len());
    }

    #[test]
    fn a_clock_that_goes_back_neither_gives_retries_away_nor_withholds_them_for_good() {
        let mut budget = Budget::default();
        assert_eq!(granted(&mut budget, 100_000), 10);
        assert_eq!(granted(&mut budget, 90_000), 0, "a little back: still spent");
        assert_eq!(granted(&mut budget, 131_000), 10, "and refilled when the clock has caught up");
        assert_eq!(granted(&mut budget, 7_000), 0, "far back: still spent");
        assert_eq!(granted(&mut budget, 38_000), 10, "and refilled a window later");
    }

    #[test]
    fn no_setting_and_no_traffic_overflows() {
        let settings = [
            Settings { window: Duration::MAX, bucket: Duration::ZERO, floor: u32::MAX, percent: u32::MAX },
            Settings { window: Duration::ZERO, bucket: Duration::MAX, floor: 0, percent: u32::MAX },
        ];
        for settings in settings {
            let mut budget = after_firsts(settings, 1_000, 0);
            for now in [0, u64::MAX, 1] {
                budget.first(at(now));
                assert!(budget.left(at(now)) > 0, "{settings:?} at {now}");
                assert!(budget.utilization(at(now)).is_finite(), "{settings:?} at {now}");
            }
        }
    }
}
