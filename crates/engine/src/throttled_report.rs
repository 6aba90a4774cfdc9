//! Reports a failure that affects many tasks at once (a body that cannot be read, a result that cannot be stored) at
//! most every 10 s, with a count, instead of once per task.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The shortest time between two reports.
pub(crate) const REPORT_EVERY: Duration = Duration::from_secs(10);

/// How often it happened, and when it was last reported.
#[derive(Debug, Default)]
pub(crate) struct ThrottledReport(Mutex<Count>);

#[derive(Debug, Default)]
struct Count {
    unreported: u64,
    reported_at: Option<Duration>,
}

impl ThrottledReport {
    /// Counts one failure. If a report is due, returns the number of failures since the last one.
    pub(crate) fn count(&self, elapsed: Duration) -> Option<u64> {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        count.unreported += 1;
        if count.reported_at.is_some_and(|reported_at| elapsed.saturating_sub(reported_at) < REPORT_EVERY) {
            return None;
        }
        count.reported_at = Some(elapsed);
        Some(std::mem::take(&mut count.unreported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_said_at_once_and_the_others_together() {
        let report = ThrottledReport::default();
        let cases = [(0, Some(1)), (0, None), (9_999, None), (10_000, Some(3)), (10_001, None), (60_000, Some(2))];
        for (millis, expected) in cases {
            assert_eq!(report.count(Duration::from_millis(millis)), expected, "after {millis} ms");
        }
    }
}
