//! The one clock that everything outside of the service is timed by: the same that its due times are on.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since the epoch.
pub fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
