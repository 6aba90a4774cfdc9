//! Retry budget: bounds the retries to one dependency.
//!
//! A limit of attempts per task does not protect a dependency: when it is down, every task fails, and five retries each
//! make six times the load when it can bear the least. A budget ties all of a dependency's retries to its *first*
//! attempts: a fifth as many may be sent, and a few more (the floor), so that a lane with little traffic can retry at
//! all. A failing call here and there is retried as if there were no budget; a dependency that is down sees its usual
//! load and a fifth.
//!
//! Read to the letter, this starves a backlog whose dependency has recovered: without new traffic, only the floor is
//! granted. So a retry that succeeds while the lane is [healthy](crate::guards::RecentOutcomes) is *refunded*: it no
//! longer counts as a retry, and counts like a first attempt. A backlog then drains as fast as the dependency proves
//! that it can bear. While the lane is not healthy nothing is refunded, and only first attempts earn retries.
//! [`Drain::Strict`] turns refunds off. Decision 0019 has the reasons and figures.
//!
//! The promise is exact: whenever a retry is granted, the unrefunded retries of the 30 seconds up to that moment,
//! itself included, are at most 10 + 20 % of the first attempts (while healthy: and the refunded retries) of those 30
//! seconds. The window is kept in buckets of a second, so a bucket that lies half within it counts where that is on the
//! safe side: its retries do, its first attempts do not. There is no division, so nothing is rounded.
//!
//! A value, not a task: callers pass `now` in, nothing sleeps here. Retries are attempts from the second on, hedges,
//! and sends after a crash. Not here: what happens to a task whose retry has to wait (a durable one waits without
//! losing an attempt, a synchronous call gets its error at once), and how long a task waits anyway (`backoff`).

use std::time::Duration;

use crate::guards::window::{self, Entry, Window};
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
    /// Whether retries that succeed are refunded.
    pub drain: Drain,
}

/// How a backlog of retries drains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Drain {
    /// A retry that succeeds while the lane is healthy is refunded.
    #[default]
    Earned,
    /// No retry is refunded: R-7 to the letter.
    Strict,
}

impl Drain {
    /// Every way.
    pub const ALL: [Drain; 2] = [Drain::Earned, Drain::Strict];

    /// Its name in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Drain::Earned => "earned",
            Drain::Strict => "strict",
        }
    }

    /// The way with this name.
    pub fn from_name(name: &str) -> Option<Drain> {
        Drain::ALL.into_iter().find(|drain| drain.as_str() == name)
    }
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
        Settings {
            window: Duration::from_secs(30),
            bucket: Duration::from_secs(1),
            floor: 10,
            percent: 20,
            drain: Drain::Earned,
        }
    }
}

/// The retries of one dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    settings: Settings,
    /// First attempts, unrefunded and refunded retries, in one bucket more than the window has: the one that is half
    /// out of it.
    window: Window<3>,
}

/// The budget is spent: there is no retry left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// When the oldest bucket is forgotten: not before then is there more, unless first attempts are made or retries
    /// refunded.
    pub ask_again_at: Timestamp,
}

/// An attempt that was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    entry: Entry,
    what: usize,
}

const FIRSTS: usize = 0;
const CHARGED: usize = 1;
const REFUNDED: usize = 2;

impl Budget {
    /// An unused budget.
    pub fn new(settings: Settings) -> Self {
        Budget { settings, window: Window::new(settings.bucket, settings.buckets() + 1) }
    }

    /// Counts a first attempt.
    pub fn first(&mut self, now: Timestamp) -> Charge {
        self.window.advance(now);
        Charge { entry: self.window.count(FIRSTS), what: FIRSTS }
    }

    /// Takes one retry, if there is one left.
    pub fn try_retry(&mut self, is_healthy: bool, now: Timestamp) -> Result<Charge, Spent> {
        match self.spent(is_healthy, now) {
            Some(spent) => Err(spent),
            None => Ok(self.charge(now)),
        }
    }

    /// Counts a retry that is made whether there is one left or not: a probe of the breaker.
    pub fn charge(&mut self, now: Timestamp) -> Charge {
        self.window.advance(now);
        Charge { entry: self.window.count(CHARGED), what: CHARGED }
    }

    /// Counts retries that may have been sent before a restart, as if they were sent at `now`.
    pub fn charge_many(&mut self, retries: u32, now: Timestamp) {
        self.window.restore([(now, [0, retries, 0])], now);
    }

    /// Refunds a retry that succeeded while the lane is healthy: it counts like a first attempt.
    pub fn refund(&mut self, charge: Charge) {
        if charge.what == CHARGED && self.settings.drain == Drain::Earned {
            self.window.recount(charge.entry, CHARGED, REFUNDED);
        }
    }

    /// Takes back the count of an attempt that was not sent.
    pub fn take_back(&mut self, charge: Charge) {
        self.window.take_back(charge.entry, charge.what);
    }

    /// Whether there is no retry left, without taking one.
    pub fn spent(&mut self, is_healthy: bool, now: Timestamp) -> Option<Spent> {
        (self.left(is_healthy, now) == 0).then(|| Spent { ask_again_at: self.window.next_edge() })
    }

    /// How many retries could be taken now.
    pub fn left(&mut self, is_healthy: bool, now: Timestamp) -> u64 {
        self.left_with_floor(u64::from(self.settings.floor), is_healthy, now)
    }

    /// How many retries could be taken now if there were no floor.
    pub fn left_without_floor(&mut self, is_healthy: bool, now: Timestamp) -> u64 {
        self.left_with_floor(0, is_healthy, now)
    }

    /// How many retries could be taken now if the floor had this size.
    pub(super) fn left_with_floor(&mut self, floor: u64, is_healthy: bool, now: Timestamp) -> u64 {
        self.window.advance(now);
        let allowed = 100 * u128::from(floor) + self.earned(is_healthy);
        u64::try_from(allowed.saturating_sub(100 * u128::from(self.charged())) / 100).unwrap_or(u64::MAX)
    }

    /// How many of the window's unrefunded retries the percentage alone does not allow, rounded up.
    pub(super) fn beyond_earned(&mut self, is_healthy: bool, now: Timestamp) -> u64 {
        self.window.advance(now);
        let beyond = (100 * u128::from(self.charged())).saturating_sub(self.earned(is_healthy));
        u64::try_from(beyond.div_ceil(100)).unwrap_or(u64::MAX)
    }

    /// Whether the next retry would need the floor, because the percentage alone does not allow it.
    pub fn needs_floor(&mut self, is_healthy: bool, now: Timestamp) -> bool {
        self.window.advance(now);
        self.earned(is_healthy) < 100 * u128::from(self.charged() + 1)
    }

    /// The part of the budget that is used: 0 is none of it, 1 is all. It may be above 1 for a while, when first
    /// attempts that retries were granted for have been forgotten before them.
    pub fn utilization(&mut self, is_healthy: bool, now: Timestamp) -> f64 {
        self.window.advance(now);
        match self.hundredths(is_healthy) {
            0 => 1.0,
            hundredths => 100.0 * self.charged() as f64 / hundredths as f64,
        }
    }

    /// What the window counts at `now`.
    pub fn counts(&mut self, now: Timestamp) -> Counts {
        self.window.advance(now);
        let [firsts, charged, refunded] = self.window.sums();
        Counts { firsts, charged, refunded }
    }

    /// When the next bucket begins, and the oldest is forgotten.
    pub fn next_edge(&mut self, now: Timestamp) -> Timestamp {
        self.window.advance(now);
        self.window.next_edge()
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What is counted, second by second, to be kept across a restart.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (Timestamp, [u32; 3])> + '_ {
        self.window.buckets()
    }

    /// Counts what was kept across a restart.
    pub(super) fn restore(&mut self, buckets: impl IntoIterator<Item = (Timestamp, [u32; 3])>, now: Timestamp) {
        self.window.restore(buckets, now);
    }

    /// Counts what another process sent, and what became of it, at the second of `report`.
    pub(super) fn add_report(&mut self, report: &Report) {
        let Report { at, firsts, probes, returned, refunded } = *report;
        self.window.adjust(at, FIRSTS, i64::from(firsts));
        self.window.adjust(at, CHARGED, i64::from(probes));
        self.window.adjust(at, CHARGED, -i64::from(returned));
        if self.settings.drain == Drain::Earned {
            // What is not known as charged cannot be refunded: it would earn retries that were never charged.
            let moved = self.window.adjust(at, CHARGED, -i64::from(refunded));
            self.window.adjust(at, REFUNDED, i64::from(moved));
        }
    }

    /// The unrefunded retries of the window.
    fn charged(&self) -> u64 {
        self.window.sums()[CHARGED]
    }

    /// What is granted for the window, in hundredths of a retry.
    fn hundredths(&self, is_healthy: bool) -> u128 {
        100 * u128::from(self.settings.floor) + self.earned(is_healthy)
    }

    /// The part of it that attempts of the window earn.
    fn earned(&self, is_healthy: bool) -> u128 {
        let [firsts, _, refunded] = self.window.sums();
        let [oldest_firsts, _, oldest_refunded] = self.window.oldest();
        let firsts = firsts - u64::from(oldest_firsts);
        let refunded = if is_healthy { refunded - u64::from(oldest_refunded) } else { 0 };
        u128::from(self.settings.percent) * u128::from(firsts + refunded)
    }
}

/// What one process counted in one second since it last reported it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// The second.
    pub at: Timestamp,
    /// First attempts; negative if more were withdrawn than sent.
    pub firsts: i32,
    /// Retries that were sent without a token: probes of the breaker.
    pub probes: u32,
    /// Tokens of this second that were not used.
    pub returned: u32,
    /// Retries of this second that succeeded while the lane was healthy.
    pub refunded: u32,
}

/// What the window of a budget counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// First attempts.
    pub firsts: u64,
    /// Retries that are in flight or were not refunded.
    pub charged: u64,
    /// Retries that were refunded.
    pub refunded: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Budget::new(Settings::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEALTHY: bool = true;
    const UNHEALTHY: bool = false;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn after_firsts(settings: Settings, firsts: u32, now: u64) -> Budget {
        let mut budget = Budget::new(settings);
        for _ in 0..firsts {
            budget.first(at(now));
        }
        budget
    }

    /// How many retries are granted in one go.
    fn granted(budget: &mut Budget, now: u64) -> usize {
        std::iter::repeat_with(|| budget.try_retry(UNHEALTHY, at(now))).take_while(Result::is_ok).take(100_000).count()
    }

    #[test]
    fn the_defaults_are_ten_and_a_fifth_of_the_first_attempts_over_thirty_seconds() {
        let second = Duration::from_secs(1);
        assert_eq!(
            Settings::default(),
            Settings { window: 30 * second, bucket: second, floor: 10, percent: 20, drain: Drain::Earned }
        );
        assert_eq!(Settings::default().buckets(), 30);
        // first attempts, retries granted
        for (firsts, expected) in [(0, 10), (1, 10), (4, 10), (5, 11), (9, 11), (10, 12), (100, 30), (10_000, 2_010)] {
            let mut budget = after_firsts(Settings::default(), firsts, 5_000);
            assert_eq!(budget.left(UNHEALTHY, at(5_000)), expected as u64, "{firsts} first attempts");
            assert_eq!(granted(&mut budget, 5_000), expected, "{firsts} first attempts");
            assert_eq!(budget.left(UNHEALTHY, at(5_000)), 0, "{firsts} first attempts");
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
    fn a_caller_that_finds_it_spent_is_told_when_to_ask_again() {
        let mut budget = Budget::default();
        assert_eq!(granted(&mut budget, 7_300), 10);
        for (now, again) in [(7_300, 8_000), (7_999, 8_000), (8_000, 9_000), (20_001, 21_000)] {
            assert_eq!(budget.try_retry(UNHEALTHY, at(now)), Err(Spent { ask_again_at: at(again) }), "at {now}");
        }
    }

    #[test]
    fn a_retry_is_forgotten_when_its_whole_bucket_is_out_of_the_window() {
        // The last retry of the bucket may have been at 7.999: at 37.999 that is 30 s ago, at 38 s more than that.
        for (now, left) in [(37_000, 0), (37_999, 0), (38_000, 10)] {
            let mut budget = Budget::default();
            assert_eq!(granted(&mut budget, 7_300), 10);
            assert_eq!(budget.left(UNHEALTHY, at(now)), left, "at {now}");
        }
    }

    #[test]
    fn a_first_attempt_is_forgotten_when_a_part_of_its_bucket_is_out_of_the_window() {
        for (now, left) in [(36_999, 30), (37_000, 10)] {
            let mut budget = after_firsts(Settings::default(), 100, 7_300);
            assert_eq!(budget.left(UNHEALTHY, at(now)), left, "at {now}");
        }
    }

    #[test]
    fn utilization_is_the_part_that_is_used() {
        let mut budget = after_firsts(Settings::default(), 50, 0);
        assert_eq!(budget.utilization(UNHEALTHY, at(0)), 0.0);
        for expected in [0.05, 0.1, 0.15] {
            budget.try_retry(UNHEALTHY, at(0)).unwrap();
            assert!((budget.utilization(UNHEALTHY, at(0)) - expected).abs() < 1e-12, "{budget:?}");
        }
        granted(&mut budget, 29_999);
        assert_eq!(budget.utilization(UNHEALTHY, at(29_999)), 1.0);
        assert_eq!(
            budget.utilization(UNHEALTHY, at(30_000)),
            2.0,
            "the first attempts are forgotten, the retries not yet"
        );
        assert_eq!(budget.utilization(UNHEALTHY, at(90_000)), 0.0);
        let mut nothing = Budget::new(Settings { floor: 0, ..Settings::default() });
        assert_eq!(nothing.utilization(UNHEALTHY, at(0)), 1.0);
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
            Settings {
                window: Duration::MAX,
                bucket: Duration::ZERO,
                floor: u32::MAX,
                percent: u32::MAX,
                ..Settings::default()
            },
            Settings {
                window: Duration::ZERO,
                bucket: Duration::MAX,
                floor: 0,
                percent: u32::MAX,
                ..Settings::default()
            },
        ];
        for settings in settings {
            let mut budget = after_firsts(settings, 1_000, 0);
            for now in [0, u64::MAX, 1] {
                budget.first(at(now));
                assert!(budget.left(UNHEALTHY, at(now)) > 0, "{settings:?} at {now}");
                assert!(budget.utilization(UNHEALTHY, at(now)).is_finite(), "{settings:?} at {now}");
            }
        }
    }

    #[test]
    fn a_refunded_retry_counts_like_a_first_attempt_while_the_lane_is_healthy() {
        let mut budget = Budget::default();
        let charges: Vec<_> = (0..10).map(|_| budget.try_retry(HEALTHY, at(0)).unwrap()).collect();
        assert!(budget.try_retry(HEALTHY, at(0)).is_err());
        charges.into_iter().for_each(|charge| budget.refund(charge));
        assert_eq!(budget.counts(at(0)), Counts { firsts: 0, charged: 0, refunded: 10 });
        assert_eq!((budget.left(HEALTHY, at(0)), budget.left(UNHEALTHY, at(0))), (12, 10));
    }

    #[test]
    fn nothing_is_refunded_twice_nor_in_strict_mode_nor_to_a_first_attempt() {
        let mut budget = Budget::default();
        let (first, retry) = (budget.first(at(0)), budget.try_retry(HEALTHY, at(0)).unwrap());
        for _ in 0..3 {
            budget.refund(first);
            budget.refund(retry);
        }
        assert_eq!(budget.counts(at(0)), Counts { firsts: 1, charged: 0, refunded: 1 });

        let mut strict = Budget::new(Settings { drain: Drain::Strict, ..Settings::default() });
        let retry = strict.try_retry(HEALTHY, at(0)).unwrap();
        strict.refund(retry);
        assert_eq!(strict.counts(at(0)), Counts { firsts: 0, charged: 1, refunded: 0 });
    }

    #[test]
    fn an_attempt_that_was_not_sent_does_not_count() {
        let mut budget = Budget::default();
        let (first, retry) = (budget.first(at(0)), budget.try_retry(UNHEALTHY, at(0)).unwrap());
        budget.take_back(first);
        budget.take_back(retry);
        assert_eq!(budget.counts(at(0)), Counts::default());
    }

    #[test]
    fn the_floor_is_needed_where_the_percentage_does_not_suffice() {
        let mut budget = after_firsts(Settings::default(), 10, 0);
        assert_eq!(
            [(); 3].map(|()| {
                let needed = budget.needs_floor(UNHEALTHY, at(0));
                budget.charge(at(0));
                needed
            }),
            [false, false, true]
        );
    }

    #[test]
    fn a_restored_budget_grants_no_more_than_it_would_have() {
        let mut budget = after_firsts(Settings::default(), 20, 7_000);
        assert_eq!(granted(&mut budget, 8_500), 14);
        let mut restored = Budget::default();
        restored.restore(budget.buckets(), at(9_000));
        assert_eq!(restored.counts(at(9_000)), budget.counts(at(9_000)));
        restored.charge_many(3, at(9_000));
        for (now, left) in [(9_000, 0), (36_999, 0), (38_999, 0), (39_000, 7), (40_000, 10)] {
            assert_eq!(restored.left(UNHEALTHY, at(now)), left, "at {now}");
        }
    }

    #[test]
    fn every_drain_has_a_name() {
        for drain in Drain::ALL {
            assert_eq!(Drain::from_name(drain.as_str()), Some(drain));
        }
    }
}
