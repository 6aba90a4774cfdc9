//! Waiting for a condition, never for a time.

use std::time::{Duration, Instant};

/// The pause between two looks at the condition.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// Far more than any condition takes, also on a machine that is busy with other things.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits until `condition` is true.
///
/// # Panics
///
/// When that takes more than a minute; `what` says what was being waited for.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < LIMIT, "waited {LIMIT:?} in vain until {what}");
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
}
