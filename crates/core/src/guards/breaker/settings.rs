//! When a breaker opens, for how long, and what closes it.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::jitter::Jitter;

/// The numbers of a breaker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// It opens on this many failures in a row.
    pub failures_in_a_row: u32,
    /// How far back calls count for their ratio.
    pub window: Duration,
    /// The steps in which they are forgotten.
    pub bucket: Duration,
    /// It opens when this part of the window's calls failed, in percent, …
    pub failure_percent: u32,
    /// … of at least this many.
    pub least_calls: u32,
    /// A call that takes this long is slow.
    pub slow_call: Duration,
    /// It opens when this part of the window's calls were slow, in percent, of at least `least_calls`.
    pub slow_percent: u32,
    /// How long it is open the first time; twice as long each further time, until it has been closed.
    pub open: Duration,
    /// The longest that it is open, before it is drawn.
    pub longest_open: Duration,
    /// The part by which that is drawn longer or shorter: breakers that opened together must not probe together.
    pub spread: f64,
    /// The longest Retry-After that it follows, so that one answer cannot close a lane for good.
    pub longest_retry_after: Duration,
    /// The number of probes; all must succeed to close it.
    pub probes: u32,
    /// A probe without an outcome after this time is replaced by another.
    pub probe_patience: Duration,
}

/// Opens on 10 failures in a row, on half of at least 20 calls in 30 s, or if all of these took a minute; for 15 s doubling
/// up to 60 s, ±20 %; 3 probes.
impl Default for Settings {
    fn default() -> Self {
        Settings {
            failures_in_a_row: 10,
            window: Duration::from_secs(30),
            bucket: Duration::from_secs(1),
            failure_percent: 50,
            least_calls: 20,
            slow_call: Duration::from_secs(60),
            slow_percent: 100,
            open: Duration::from_secs(15),
            longest_open: Duration::from_secs(60),
            spread: 0.2,
            longest_retry_after: Duration::from_secs(60 * 60),
            probes: 3,
            // Longer than any attempt: a probe that takes long is not replaced while it is on the wire.
            probe_patience: Duration::from_secs(16 * 60),
        }
    }
}

impl Settings {
    /// How long it is open the `time`th time in a row (from 1), drawn with `unit`: the backoff of a whole lane.
    pub(super) fn pause(&self, time: u32, unit: f64) -> Duration {
        let backoff = Backoff::Exponential { initial: self.open, multiplier: 2.0, max: self.longest_open };
        Jitter::Proportional { ratio: self.spread.clamp(0.0, 1.0) }.draw(&backoff, time, None, unit)
    }
}
