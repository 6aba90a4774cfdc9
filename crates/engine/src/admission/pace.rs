//! Pace: what was measured of a lane's attempts. How long they hold a slot, and whether they get an answer at all.
//!
//! A lane is *slow* while its smoothed slot time, or the age of its oldest attempt on the wire, is over [`SLOW_AFTER`].
//! The age counts because a dependency that hangs ends no attempt that could be measured. After [`ESTIMATE_FOR`]
//! without an attempt the lane is *unknown* again.
//!
//! A lane is *failing* while more than half of its latest attempts ended without an answer (refused, reset, not
//! resolved). Such attempts take hardly any slot time, so the rules above would not limit them, and a backlog for a
//! dependency that is down would use up the processor and the store instead. A failing lane gets [`FIRST_SLOTS`] slots,
//! and a slot rests for [`REST`] after an attempt that failed. This is not a circuit breaker: it limits what failures
//! cost the other lanes.

use std::time::Duration;

use redrive_core::Latency;
use redrive_core::latency::ESTIMATE_FOR;

use super::Pool;

/// A lane is slow from this slot time on.
pub(crate) const SLOW_AFTER: Duration = Duration::from_millis(250);
/// The slots of an unknown lane, and of a failing one.
pub(crate) const FIRST_SLOTS: usize = 2;
/// How long a failing lane's slot rests after an attempt without an answer.
pub(crate) const REST: Duration = Duration::from_secs(1);
/// The longest spacing between two starts in a slow lane: a lane that recovers needs attempts that show it.
const WIDEST_SPACING: Duration = Duration::from_millis(50);
/// The weight of one attempt in the share of failures, as a power of two: 1/8.
const FAILURE_SHIFT: u32 = 3;
/// The value of `Pace::failures` when all attempts failed.
const ALL_FAILED: u32 = 1 << 16;

/// How an attempt that held a slot ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptEnd {
    /// The dependency answered, with any status.
    Answered,
    /// The dependency took the request and did not answer in time.
    TimedOut,
    /// The failure was local: this machine lacked a resource, or the body could not be read.
    LocalFailure,
    /// There was no connection, or it broke.
    NoConnection,
}

/// What was measured of a lane's attempts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    slot_time: Latency,
    /// Smoothed share of attempts without an answer, of [`ALL_FAILED`].
    failures: u32,
    /// Attempts that ended quickly and with an answer, since the lane was unknown.
    quick: usize,
    /// When the last attempt ended; `None` before the first.
    ended_at: Option<Duration>,
}

impl Pace {
    /// Records an attempt that held its slot for `took`. Returns how long the slot rests.
    pub(crate) fn record(&mut self, took: Duration, end: AttemptEnd, now: Duration) -> Duration {
        if end == AttemptEnd::LocalFailure {
            return REST;
        }
        if !self.is_known(now) {
            *self = Pace::default();
        }
        self.slot_time.record(took);
        self.failures -= self.failures >> FAILURE_SHIFT;
        match end {
            AttemptEnd::NoConnection => self.failures += ALL_FAILED >> FAILURE_SHIFT,
            AttemptEnd::Answered if took < SLOW_AFTER => self.quick = self.quick.saturating_add(1),
            AttemptEnd::Answered | AttemptEnd::TimedOut | AttemptEnd::LocalFailure => {}
        }
        self.ended_at = Some(now);
        match end {
            AttemptEnd::NoConnection if self.is_failing() => {
                self.quick = 0;
                REST
            }
            _ => Duration::ZERO,
        }
    }

    /// The pool that the lane's slots are counted in. `oldest` is when its oldest attempt on the wire began.
    pub(crate) fn pool(&self, oldest: Option<Duration>, now: Duration) -> Pool {
        let is_hanging = oldest.is_some_and(|began| now.saturating_sub(began) >= SLOW_AFTER);
        let is_known = self.is_known(now);
        if is_hanging || is_known && (self.is_failing() || self.slot_time.estimate() >= SLOW_AFTER) {
            Pool::Slow
        } else if is_known && self.quick > 0 {
            Pool::Fast
        } else {
            // An attempt that fails quickly is no measure of how long a call takes.
            Pool::Unknown
        }
    }

    /// The most slots that the lane has earned by now.
    pub(crate) fn earned(&self, now: Duration) -> usize {
        match self.is_known(now) {
            true if self.is_failing() => FIRST_SLOTS,
            // The rounds of a slow lane are too long to wait for: its pool limits it.
            true if self.slot_time.estimate() >= SLOW_AFTER => usize::MAX,
            true => FIRST_SLOTS.saturating_add(self.quick),
            false => FIRST_SLOTS,
        }
    }

    /// The time between two starts in a slow lane that has held `most` slots: half of the time in which its slots turn
    /// over. So it delays only starts that would otherwise come at one moment, end at one moment, and be settled and
    /// claimed at one moment.
    pub(crate) fn spacing(&self, most: usize, now: Duration) -> Duration {
        match self.slot_time(now) {
            // In whole milliseconds: timers are no finer than that.
            Some(slot_time) if !self.is_failing() => {
                let spacing = slot_time.as_millis() / 2 / most.max(1) as u128;
                Duration::from_millis(u64::try_from(spacing).unwrap_or(u64::MAX)).min(WIDEST_SPACING)
            }
            _ => Duration::ZERO,
        }
    }

    /// The expected time that an attempt holds its slot; `None` while the lane is unknown.
    pub(crate) fn slot_time(&self, now: Duration) -> Option<Duration> {
        self.is_known(now).then(|| self.slot_time.estimate())
    }

    fn is_failing(&self) -> bool {
        self.failures > ALL_FAILED / 2
    }

    fn is_known(&self, now: Duration) -> bool {
        self.ended_at.is_some_and(|ended| now.saturating_sub(ended) <= ESTIMATE_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_millis(2);
    const NOW: Duration = Duration::from_secs(100);

    fn after(attempts: impl IntoIterator<Item = (Duration, AttemptEnd)>) -> Pace {
        let mut pace = Pace::default();
        for (took, end) in attempts {
            pace.record(took, end, NOW);
        }
        pace
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_lane_begins_with_two_slots_and_doubles_them_with_each_quick_round() {
        let mut pace = Pace::default();
        assert_eq!((pace.earned(NOW), pace.pool(None, NOW)), (2, Pool::Unknown));
        for slots in [4, 8, 16, 32] {
            for _ in 0..slots / 2 {
                pace.record(QUICK, AttemptEnd::Answered, NOW);
            }
            assert_eq!((pace.earned(NOW), pace.pool(None, NOW)), (slots, Pool::Fast));
        }
    }

    #[test]
    fn slot_time_or_the_age_of_the_oldest_attempt_makes_a_lane_slow() {
        // what attempts took, the age of the oldest on the wire, the pool
        let cases = [
            (249, None, Pool::Fast),
            (250, None, Pool::Slow),
            (2, Some(249), Pool::Fast),
            (2, Some(250), Pool::Slow),
            (4_000, Some(0), Pool::Slow),
        ];
        for (took, age, pool) in cases {
            let pace = after([(millis(took), AttemptEnd::Answered)]);
            let oldest = age.map(|age| NOW - millis(age));
            assert_eq!(pace.pool(oldest, NOW), pool, "{took} ms, {age:?}");
        }
        assert_eq!(after([(QUICK, AttemptEnd::NoConnection)]).pool(None, NOW), Pool::Unknown);
        assert_eq!(Pace::default().pool(Some(NOW - millis(249)), NOW), Pool::Unknown);
        assert_eq!(
            Pace::default().pool(Some(NOW - millis(250)), NOW),
            Pool::Slow,
            "nothing is known but that it hangs"
        );
    }

    #[test]
    fn after_half_a_minute_without_an_attempt_nothing_is_known() {
        let mut pace = after([(QUICK, AttemptEnd::Answered); 100]);
        let later = NOW + ESTIMATE_FOR;
        assert_eq!((pace.earned(later), pace.pool(None, later)), (102, Pool::Fast));
        let later = later + millis(1);
        assert_eq!((pace.earned(later), pace.pool(None, later), pace.slot_time(later)), (2, Pool::Unknown, None));
        pace.record(millis(10), AttemptEnd::Answered, later);
        assert_eq!(
            (pace.earned(later), pace.slot_time(later)),
            (3, Some(millis(10))),
            "the old figures do not weigh in"
        );
    }

    #[test]
    fn a_lane_fails_while_more_than_half_of_its_attempts_get_no_answer() {
        let mut pace = after([(QUICK, AttemptEnd::Answered); 100]);
        let rests: Vec<Duration> = (0..7).map(|_| pace.record(QUICK, AttemptEnd::NoConnection, NOW)).collect();
        assert_eq!(rests, [vec![Duration::ZERO; 5], vec![REST; 2]].concat());
        assert_eq!((pace.earned(NOW), pace.pool(None, NOW)), (2, Pool::Slow));
        let recovered = (0..10).position(|_| {
            pace.record(QUICK, AttemptEnd::Answered, NOW);
            pace.pool(None, NOW) == Pool::Fast
        });
        assert_eq!(recovered, Some(1));
        assert_eq!(pace.earned(NOW), 4, "its slots are earned anew");
    }

    #[test]
    fn a_timeout_is_not_quick_and_what_was_not_the_dependencys_doing_says_nothing() {
        let mut pace = after([(QUICK, AttemptEnd::TimedOut); 9]);
        assert_eq!((pace.earned(NOW), pace.pool(None, NOW)), (2, Pool::Unknown));
        let mut new = Pace::default();
        assert_eq!((new.record(QUICK, AttemptEnd::LocalFailure, NOW), new.slot_time(NOW)), (REST, None));
        assert_eq!(pace.record(QUICK, AttemptEnd::LocalFailure, NOW), REST);
    }

    #[test]
    fn failures_now_and_then_cost_a_lane_nothing() {
        let every_third =
            (0..300).map(|n| (QUICK, if n % 3 == 0 { AttemptEnd::NoConnection } else { AttemptEnd::Answered }));
        let mut pace = after(every_third);
        assert_eq!((pace.earned(NOW), pace.pool(None, NOW)), (202, Pool::Fast));
        assert_eq!(pace.record(QUICK, AttemptEnd::NoConnection, NOW), Duration::ZERO);
    }
}
