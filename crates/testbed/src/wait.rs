//! Waits for a condition, never for a fixed time.

use std::time::{Duration, Instant};

/// The pause between two checks of the condition.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// Far more than any condition takes, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits until `condition` is true.
///
/// # Panics
///
/// When that takes more than a minute; `what` describes the condition.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < LIMIT, "waited {LIMIT:?} in vain until {what}");
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
}
