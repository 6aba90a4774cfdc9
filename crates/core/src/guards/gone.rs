//! Gone: whether a dependency seems to be gone for good, so that a person should look.
//!
//! A dependency that answers 410 says so itself. One that has had attempts for 24 hours and answered none of them with
//! success may have moved, or refuse these requests for good. In both cases an event is raised. Nothing is held back,
//! unless the policy of the task says `pauseOnGone`.
//!
//! Only 2xx is a success here: a dependency that answers every request with 404 works, but nothing gets delivered. Not
//! here: whether a dependency works at the moment (`health`, `recent`).

use std::time::Duration;

use crate::time::Timestamp;

/// Attempts without a success for this long raise an event.
pub const NO_SUCCESS_FOR: Duration = Duration::from_secs(24 * 3_600);
/// The same event is not raised again within this time.
const RAISED_EVERY_410: Duration = Duration::from_secs(3_600);
const RAISED_EVERY_FAILING: Duration = NO_SUCCESS_FOR;
/// Attempts without a success over this time are kept across a restart.
const KEPT_FROM: Duration = Duration::from_secs(600);

/// Why a dependency seems to be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// It answered 410 Gone.
    Answered,
    /// There were attempts, and none has succeeded since this time.
    NoSuccessSince(Timestamp),
}

impl Gone {
    /// Its name in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Gone::Answered => "answered-410",
            Gone::NoSuccessSince(_) => "no-success",
        }
    }
}

/// A dependency seems to be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoneSign {
    /// Why.
    pub gone: Gone,
    /// Whether an event is raised: not for each attempt that shows it.
    pub is_event: bool,
}

/// What one attempt says about the presence of its dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It answered with success.
    Success,
    /// It answered 410 Gone.
    Gone,
    /// It answered with anything else, or not at all.
    NoSuccess,
}

impl Presence {
    /// What an answer with this status says.
    pub const fn of_status(status: u16) -> Presence {
        match status {
            200..=299 => Presence::Success,
            410 => Presence::Gone,
            _ => Presence::NoSuccess,
        }
    }
}

/// Watches whether the dependency of one lane seems to be gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GoneWatch {
    /// The first attempt without success since the last success.
    failing_since: Option<Timestamp>,
    /// The last attempt, if it had no success.
    failed_at: Option<Timestamp>,
    /// When events were last raised.
    raised_410_at: Option<Timestamp>,
    raised_failing_at: Option<Timestamp>,
}

impl GoneWatch {
    /// Records an attempt. Returns whether the dependency seems to be gone.
    pub fn record(&mut self, presence: Presence, now: Timestamp) -> Option<GoneSign> {
        if presence == Presence::Success {
            (self.failing_since, self.failed_at, self.raised_failing_at) = (None, None, None);
            return None;
        }
        self.failed_at = Some(now);
        // The clock may have been set back.
        let since = self.failing_since.map_or(now, |since| since.min(now));
        self.failing_since = Some(since);
        let (gone, raised_at, every) = match presence {
            Presence::Gone => (Gone::Answered, &mut self.raised_410_at, RAISED_EVERY_410),
            _ if now.since(since) >= NO_SUCCESS_FOR => {
                (Gone::NoSuccessSince(since), &mut self.raised_failing_at, RAISED_EVERY_FAILING)
            }
            _ => return None,
        };
        let is_event = is_over(*raised_at, every, now);
        if is_event {
            *raised_at = Some(now);
        }
        Some(GoneSign { gone, is_event })
    }

    /// The first attempt without success since the last success.
    pub fn failing_since(&self) -> Option<Timestamp> {
        self.failing_since
    }

    /// The first and the last attempt without success since the last success, to be kept across a restart.
    pub(super) fn failing(&self) -> Option<(Timestamp, Timestamp)> {
        self.failing_since.zip(self.failed_at)
    }

    /// What was kept across a restart.
    pub(super) fn restore(failing: Option<(Timestamp, Timestamp)>) -> Self {
        let (failing_since, failed_at) = failing.unzip();
        GoneWatch { failing_since, failed_at, ..GoneWatch::default() }
    }

    /// Takes over what is known of all processes: no attempt has succeeded since this time, `None` if one has.
    pub(super) fn set_failing_since(&mut self, since: Option<Timestamp>) {
        self.failing_since = since;
    }

    /// Whether attempts have failed over so long a time that this is kept across a restart. It is not needed any more when
    /// there has been no attempt for a day.
    pub fn is_kept(&self, now: Timestamp) -> bool {
        let (Some(since), Some(last)) = (self.failing_since, self.failed_at) else { return false };
        last.since(since) >= KEPT_FROM && now.since(last) < NO_SUCCESS_FOR
    }
}

/// Whether this time is over since an event was raised. One that lies in the future was raised before the clock was set
/// back.
fn is_over(raised_at: Option<Timestamp>, every: Duration, now: Timestamp) -> bool {
    raised_at.is_none_or(|raised_at| raised_at > now || now.since(raised_at) >= every)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    /// Records an attempt; the event that is raised.
    fn event(watch: &mut GoneWatch, presence: Presence, now: u64) -> Option<Gone> {
        watch.record(presence, at(now)).filter(|sign| sign.is_event).map(|sign| sign.gone)
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(1_000 * HOUR + millis)
    }

    #[test]
    fn only_2xx_is_a_success_and_only_410_says_gone() {
        let cases = [
            (Presence::Success, vec![200, 204, 299]),
            (Presence::Gone, vec![410]),
            (Presence::NoSuccess, vec![301, 400, 404, 409, 411, 429, 500, 503]),
        ];
        for (presence, statuses) in cases {
            for status in statuses {
                assert_eq!(Presence::of_status(status), presence, "{status}");
            }
        }
    }

    #[test]
    fn a_day_of_attempts_without_a_success_is_raised_once_a_day() {
        let mut watch = GoneWatch::default();
        let failing = Gone::NoSuccessSince(at(0));
        // when, what is raised
        let cases = [
            (0, None),
            (HOUR, None),
            (24 * HOUR - 1, None),
            (24 * HOUR, Some(failing)),
            (24 * HOUR + 1, None),
            (48 * HOUR - 1, None),
            (48 * HOUR, Some(failing)),
        ];
        for (now, expected) in cases {
            assert_eq!(event(&mut watch, Presence::NoSuccess, now), expected, "at {now}");
        }
        assert_eq!(event(&mut watch, Presence::Success, 49 * HOUR), None);
        assert_eq!(event(&mut watch, Presence::NoSuccess, 50 * HOUR), None, "it counts from here");
        let since = Gone::NoSuccessSince(at(50 * HOUR));
        assert_eq!(event(&mut watch, Presence::NoSuccess, 74 * HOUR), Some(since));
    }

    #[test]
    fn a_410_is_raised_at_once_and_at_most_once_an_hour() {
        let mut watch = GoneWatch::default();
        for (now, is_raised) in [(0, true), (1, false), (HOUR - 1, false), (HOUR, true), (2 * HOUR - 1, false)] {
            let expected = is_raised.then_some(Gone::Answered);
            assert_eq!(event(&mut watch, Presence::Gone, now), expected, "at {now}");
            // A lane may call many URLs of one origin.
            assert_eq!(event(&mut watch, Presence::Success, now), None);
        }
    }

    #[test]
    fn every_attempt_that_shows_it_says_so_for_those_who_want_to_pause() {
        let mut watch = GoneWatch::default();
        let signs = [0, 1].map(|now| watch.record(Presence::Gone, at(now)));
        let sign = |is_event| Some(GoneSign { gone: Gone::Answered, is_event });
        assert_eq!(signs, [sign(true), sign(false)]);
    }

    #[test]
    fn a_day_without_attempts_is_not_a_day_of_failures() {
        let mut watch = GoneWatch::default();
        watch.record(Presence::Success, at(0));
        assert_eq!(event(&mut watch, Presence::NoSuccess, 100 * HOUR), None);
    }

    #[test]
    fn failures_over_ten_minutes_are_kept_until_a_day_after_the_last_one() {
        const MINUTE: u64 = 60_000;
        let mut watch = GoneWatch::default();
        watch.record(Presence::NoSuccess, at(0));
        assert!(!watch.is_kept(at(HOUR)), "one failure");
        watch.record(Presence::NoSuccess, at(10 * MINUTE));
        let is_kept = [10 * MINUTE, 24 * HOUR, 24 * HOUR + 10 * MINUTE].map(|now| watch.is_kept(at(now)));
        assert_eq!(is_kept, [true, true, false]);
        watch.record(Presence::Success, at(11 * MINUTE));
        assert!(!watch.is_kept(at(11 * MINUTE)));
    }

    #[test]
    fn a_clock_that_is_set_back_neither_raises_nor_silences() {
        let mut watch = GoneWatch::default();
        watch.record(Presence::NoSuccess, at(10 * HOUR));
        assert_eq!(event(&mut watch, Presence::NoSuccess, 0), None);
        assert_eq!(event(&mut watch, Presence::NoSuccess, 24 * HOUR), Some(Gone::NoSuccessSince(at(0))));
        watch.record(Presence::Gone, at(30 * HOUR));
        assert_eq!(event(&mut watch, Presence::Gone, 20 * HOUR), Some(Gone::Answered));
    }
}
