//! The clock of all measurements outside of the service: the same as that of its due times.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since the epoch.
pub fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
