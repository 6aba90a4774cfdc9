//! True time: the time of an observer outside of all machines. The machines' own clocks may differ (`world::machine`).

use std::fmt;
use std::time::Duration;

use redrive_core::Timestamp;

/// The correct time at the beginning of every world.
pub const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// A moment of true time, in microseconds since the world's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub u64);

impl Moment {
    /// This moment moved later, by no less than `wait`: a timer never fires early.
    pub fn after(self, wait: Duration) -> Moment {
        let micros = wait.as_nanos().div_ceil(1_000);
        Moment(self.0.saturating_add(u64::try_from(micros).unwrap_or(u64::MAX)))
    }

    /// The time from `earlier` to here; zero if `earlier` is later.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// The correct wall-clock time at this moment.
    pub fn wall(self) -> Timestamp {
        Timestamp::from_millis(START.as_millis() + self.0 / 1_000)
    }

    /// The moment at which the correct time is `wall`; the beginning if that was before it.
    pub fn of_wall(wall: Timestamp) -> Moment {
        Moment(wall.as_millis().saturating_sub(START.as_millis()).saturating_mul(1_000))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.0 / 1_000_000, self.0 % 1_000_000);
        write!(f, "{}:{:02}:{:02}.{micros:06}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
    }
}
