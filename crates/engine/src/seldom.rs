//! What goes wrong for many tasks at once (a body that cannot be read, a result that cannot be written down): said now and
//! then, with its number, instead of once for each task.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long nothing more is said after something was.
pub(crate) const SAY_EVERY: Duration = Duration::from_secs(10);

/// How often it happened, and when it was last said.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<Count>);

#[derive(Debug, Default)]
struct Count {
    unsaid: u64,
    said_at: Option<Duration>,
}

impl Seldom {
    /// Counts one. If it is time to say so, answers how many there were since that was last done.
    pub(crate) fn count(&self, elapsed: Duration) -> Option<u64> {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        count.unsaid += 1;
        if count.said_at.is_some_and(|said_at| elapsed.saturating_sub(said_at) < SAY_EVERY) {
            return None;
        }
        count.said_at = Some(elapsed);
        Some(std::mem::take(&mut count.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_said_at_once_and_the_others_together() {
        let seldom = Seldom::default();
        let cases = [(0, Some(1)), (0, None), (9_999, None), (10_000, Some(3)), (10_001, None), (60_000, Some(2))];
        for (millis, expected) in cases {
            assert_eq!(seldom.count(Duration::from_millis(millis)), expected, "after {millis} ms");
        }
    }
}
