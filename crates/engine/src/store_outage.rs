//! Reports one outage of the store once, however many calls fail in it: a line when it begins, one a minute with the
//! number of failures, and one when it ends.
//!
//! A store may take reads and refuse writes (a full disk). So an outage lasts until every kind of call that failed has
//! succeeded again, and nothing has failed for a few seconds.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often an outage is reported while it lasts.
const REPORT_EVERY: Duration = Duration::from_secs(60);
/// How long no call may fail before an outage is over.
const QUIET_FOR: Duration = Duration::from_secs(5);
/// How long a store counts as failing after a call failed.
const FAILING_FOR: Duration = Duration::from_secs(60);
/// After this time without a failure, a kind of call no longer prolongs the outage: it may never be made again.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// A line for the log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The outage began with this failure.
    Began,
    /// The outage goes on, with this many failures since the last report.
    GoesOn(u64),
    /// The outage ended, with this many failures in all and this duration.
    Ended(u64, Duration),
}

/// The outage in progress, if there is one.
#[derive(Debug, Default)]
pub(crate) struct StoreOutage {
    /// Whether an outage is in progress: spares calls that succeed, which are most, the lock.
    is_going_on: AtomicBool,
    state: Mutex<Option<Outage>>,
}

#[derive(Debug)]
struct Outage {
    began: Duration,
    reported: Duration,
    last_failure: Duration,
    unreported: u64,
    failures: u64,
    /// The kinds of calls that failed, each with the time of its last failure.
    failing: BTreeMap<&'static str, Duration>,
}

impl StoreOutage {
    /// Whether an outage is in progress.
    pub(crate) fn is_going_on(&self) -> bool {
        self.is_going_on.load(Ordering::Acquire)
    }

    /// Whether an outage is in progress in which a call failed lately. An outage lasts until each kind of call that failed works
    /// again, and such a call may never be made again.
    pub(crate) fn is_failing(&self, now: Duration) -> bool {
        let is_late = |outage: &Outage| now.saturating_sub(outage.last_failure) < FAILING_FOR;
        self.is_going_on() && self.state.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(is_late)
    }

    /// Notes that a call of this kind failed.
    pub(crate) fn failed(&self, doing: &'static str, at: Duration) -> Option<Report> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(outage) = &mut *state else {
            let failing = BTreeMap::from([(doing, at)]);
            let (unreported, failures) = (0, 1);
            *state = Some(Outage { began: at, reported: at, last_failure: at, unreported, failures, failing });
            self.is_going_on.store(true, Ordering::Release);
            return Some(Report::Began);
        };
        outage.failing.insert(doing, at);
        outage.last_failure = at;
        outage.unreported += 1;
        outage.failures += 1;
        if at.saturating_sub(outage.reported) < REPORT_EVERY {
            return None;
        }
        outage.reported = at;
        Some(Report::GoesOn(std::mem::take(&mut outage.unreported)))
    }

    /// Notes that a call of this kind succeeded.
    pub(crate) fn worked(&self, doing: &'static str, at: Duration) -> Option<Report> {
        if !self.is_going_on.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let outage = state.as_mut()?;
        outage.failing.retain(|kind, failed| *kind != doing && at.saturating_sub(*failed) < FORGOTTEN_AFTER);
        if !outage.failing.is_empty() || at.saturating_sub(outage.last_failure) < QUIET_FOR {
            return None;
        }
        let report = Report::Ended(outage.failures, at.saturating_sub(outage.began));
        *state = None;
        self.is_going_on.store(false, Ordering::Release);
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_outage_is_reported_when_it_begins_once_a_minute_and_when_it_ends() {
        let outage = StoreOutage::default();
        assert_eq!(outage.worked("submit", at(0)), None);
        assert_eq!(outage.failed("submit", at(10)), Some(Report::Began));
        for second in 11..70 {
            assert_eq!(outage.failed("submit", at(second)), None, "{second}");
        }
        assert_eq!(outage.failed("claim", at(70)), Some(Report::GoesOn(60)));
        assert_eq!(outage.worked("claim", at(71)), None);
        assert_eq!(outage.worked("submit", at(74)), None, "too soon after the last failure");
        assert_eq!(outage.worked("submit", at(75)), Some(Report::Ended(61, at(65))));
        assert_eq!(outage.worked("submit", at(76)), None);
        assert_eq!(outage.failed("submit", at(80)), Some(Report::Began));
    }

    #[test]
    fn reads_that_work_do_not_end_an_outage_of_writes() {
        let outage = StoreOutage::default();
        assert_eq!(outage.failed("submit", at(0)), Some(Report::Began));
        assert_eq!(outage.failed("cancel", at(1)), None);
        assert_eq!(outage.worked("list", at(20)), None);
        assert_eq!(outage.worked("submit", at(30)), None, "a cancel may still fail");
        assert_eq!(outage.worked("list", at(600)), None);
        assert_eq!(outage.worked("list", at(601)), Some(Report::Ended(2, at(601))));
    }

    #[test]
    fn a_store_in_which_nothing_fails_any_more_is_not_failing_even_if_the_call_is_never_repeated() {
        let outage = StoreOutage::default();
        assert!(!outage.is_failing(at(0)));
        outage.failed("listTasks", at(0));
        outage.worked("claim", at(10));
        assert!(outage.is_failing(at(59)) && outage.is_going_on());
        assert!(!outage.is_failing(at(60)) && outage.is_going_on());
        outage.failed("claim", at(70));
        assert!(outage.is_failing(at(71)));
    }

    #[test]
    fn a_store_that_fails_now_and_then_has_one_outage() {
        let outage = StoreOutage::default();
        assert_eq!(outage.failed("submit", at(0)), Some(Report::Began));
        for second in (2..40).step_by(4) {
            assert_eq!(outage.worked("submit", at(second)), None);
            assert_eq!(outage.failed("submit", at(second + 2)), None);
        }
    }
}
