//! A moment, as milliseconds since the Unix epoch.
//!
//! All arithmetic saturates: a moment never wraps around, and a difference is never negative.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

/// Milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The last moment that every store can hold (signed 64 bits).
    pub const MAX: Timestamp = Timestamp(i64::MAX as u64);

    /// The moment `millis` after the epoch, or [`Timestamp::MAX`] if that is earlier.
    pub const fn from_millis(millis: u64) -> Self {
        if millis > Self::MAX.0 { Self::MAX } else { Timestamp(millis) }
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This moment moved later by `wait`, whole milliseconds, rounded up: a wait is never cut short.
    pub fn after(self, wait: Duration) -> Self {
        Timestamp::from_millis(self.0.saturating_add(ceil_millis(wait)))
    }

    /// This moment moved earlier by `back`, not before the epoch.
    pub fn before(self, back: Duration) -> Self {
        Timestamp(self.0.saturating_sub(ceil_millis(back)))
    }

    /// The time from `earlier` to here; zero if `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// By hand, so that no moment beyond [`Timestamp::MAX`] comes in from outside.
impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Timestamp::from_millis)
    }
}

fn ceil_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_rounded_up_to_the_millisecond() {
        let now = Timestamp::from_millis(1_000);
        assert_eq!(now.after(Duration::from_micros(1)).as_millis(), 1_001);
        assert_eq!(now.after(Duration::ZERO).as_millis(), 1_000);
    }

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Timestamp::from_millis(5).after(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_millis(5).before(Duration::MAX).as_millis(), 0);
        assert_eq!(Timestamp::from_millis(5).since(Timestamp::from_millis(9)), Duration::ZERO);
        assert_eq!(Timestamp::from_millis(u64::MAX), Timestamp::MAX);
    }

    #[test]
    fn a_step_back_is_rounded_up_too() {
        let now = Timestamp::from_millis(1_000);
        assert_eq!(now.before(Duration::from_micros(1)).as_millis(), 999);
        assert_eq!(now.before(Duration::from_millis(1)).as_millis(), 999);
        assert_eq!(now.before(Duration::ZERO), now);
    }

    #[test]
    fn the_time_between_two_moments_is_exact() {
        let earlier = Timestamp::from_millis(1_700_000_000_123);
        let later = earlier.after(Duration::from_millis(86_400_001));
        assert_eq!(later.since(earlier), Duration::from_millis(86_400_001));
        assert_eq!(later.since(later), Duration::ZERO);
    }

    #[test]
    fn every_moment_fits_into_a_signed_column() {
        assert_eq!(i64::try_from(Timestamp::MAX.as_millis()), Ok(i64::MAX));
        assert_eq!(Timestamp::MAX.after(Duration::from_millis(1)), Timestamp::MAX);
    }

    #[test]
    fn a_moment_is_a_number_on_the_wire_and_stays_in_range() {
        assert_eq!(serde_json::to_string(&Timestamp::from_millis(1_700_000_000_000)).unwrap(), "1700000000000");
        let cases = [("0", Timestamp::default()), ("1700000000000", Timestamp::from_millis(1_700_000_000_000))];
        for (json, expected) in cases {
            assert_eq!(serde_json::from_str::<Timestamp>(json).unwrap(), expected);
        }
        assert_eq!(serde_json::from_str::<Timestamp>("18446744073709551615").unwrap(), Timestamp::MAX);
        assert!(serde_json::from_str::<Timestamp>("-1").is_err());
    }
}
