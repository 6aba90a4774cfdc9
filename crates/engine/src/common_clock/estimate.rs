//! Estimate of the shared store's clock from readings of it. Pure: readings are arguments, nothing is read here.
//!
//! An offset is a time since the epoch minus this process's elapsed time, both in microseconds. It is constant for as
//! long as neither clock is set. The error of a reading is half of the time that it took. It grows with age, because
//! two clocks do not run at exactly the same speed.
//!
//! A step of the store's clock (another server took over, it was set by hand) would send tasks early or end them if it
//! were followed at once. It is followed if the machine's own clock agrees with it, or if the step is short and lasts.
//! Until then the process claims nothing.

use std::time::Duration;

use redrive_core::Timestamp;

/// The largest error of the time with which a process claims tasks, unless its leases are short.
const MAX_ERROR: Duration = Duration::from_millis(500);
/// The highest rate at which two clocks drift apart, in millionths.
const DRIFT_PPM: u32 = 200;
/// Differences up to this are followed at once; a larger difference of the machine's clock is reported.
pub(crate) const SMALL: Duration = Duration::from_secs(1);
/// A step of the store's clock up to this is followed once the clock has kept to it for [`STEP_LASTS`].
const SHORT_STEP: Duration = Duration::from_secs(60);
const STEP_LASTS: Duration = Duration::from_secs(10);

/// One reading of the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// In microseconds.
    offset: i64,
    error: Duration,
    /// In this process's elapsed time.
    at: Duration,
}

impl Reading {
    /// The store's clock showed `shown` at a moment between `asked` and `answered`, in elapsed time.
    pub(crate) fn new(shown: Timestamp, asked: Duration, answered: Duration) -> Self {
        let half = answered.saturating_sub(asked) / 2;
        // The shown time was truncated to whole milliseconds.
        let rounding = Duration::from_micros(500);
        let shown = micros(Duration::from_millis(shown.as_millis())).saturating_add(micros(rounding));
        Reading { offset: shown.saturating_sub(micros(asked + half)), error: half + rounding, at: answered }
    }

    fn error_at(&self, at: Duration) -> Duration {
        self.error.saturating_add(at.saturating_sub(self.at) / 1_000_000 * DRIFT_PPM)
    }

    fn distance(&self, other: &Reading) -> Duration {
        Duration::from_micros(self.offset.abs_diff(other.offset))
    }

    /// Whether both readings can be right.
    fn agrees_with(&self, later: &Reading) -> bool {
        self.distance(later) <= self.error_at(later.at).saturating_add(later.error)
    }
}

/// The largest error of the time with which a process claims tasks, with this margin of its leases: two processes whose
/// errors have opposite signs must still agree about the end of a lease.
pub(crate) fn max_error(lease_margin: Duration) -> Duration {
    MAX_ERROR.min(lease_margin / 5)
}

/// The estimate of the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockEstimate {
    /// The clock has not been read yet.
    Nothing,
    /// The clock was read, and this reading counts.
    Time(Reading),
    /// The clock was at `from`, and has shown another time since `since`.
    Stepped { from: Reading, to: Reading, since: Duration },
}

impl ClockEstimate {
    /// The estimate after another reading. `wall` is the offset of the machine's own clock.
    pub(crate) fn after(self, reading: Reading, wall: i64, max_error: Duration) -> ClockEstimate {
        let is_useless = reading.error > max_error;
        match self {
            ClockEstimate::Nothing => ClockEstimate::Time(reading),
            ClockEstimate::Time(known) if known.agrees_with(&reading) => {
                ClockEstimate::Time(if reading.error <= known.error_at(reading.at) { reading } else { known })
            }
            ClockEstimate::Time(_) | ClockEstimate::Stepped { .. } if is_useless => self,
            // The error of an old reading is the drift of two clocks, and not more.
            ClockEstimate::Time(known)
                if known.distance(&reading) <= SMALL.saturating_add(known.error_at(reading.at)) =>
            {
                ClockEstimate::Time(reading)
            }
            ClockEstimate::Time(known) => ClockEstimate::Stepped { from: known, to: reading, since: reading.at },
            ClockEstimate::Stepped { from, .. } if from.agrees_with(&reading) => ClockEstimate::Time(reading),
            ClockEstimate::Stepped { from, to, since } if to.agrees_with(&reading) => {
                let is_confirmed = Duration::from_micros(reading.offset.abs_diff(wall)) <= SMALL;
                let has_stayed = reading.at.saturating_sub(since) >= STEP_LASTS;
                match is_confirmed || has_stayed && from.distance(&reading) <= SHORT_STEP {
                    true => ClockEstimate::Time(reading),
                    false => ClockEstimate::Stepped { from, to: reading, since },
                }
            }
            ClockEstimate::Stepped { from, .. } => ClockEstimate::Stepped { from, to: reading, since: reading.at },
        }
    }

    /// The offset of the time that the process works on, in microseconds. It is the earliest that the reading allows,
    /// so that nothing is sent, ended or taken over early.
    pub(crate) fn offset(&self) -> Option<i64> {
        match self {
            ClockEstimate::Nothing => None,
            ClockEstimate::Time(known) | ClockEstimate::Stepped { from: known, .. } => {
                Some(known.offset.saturating_sub(micros(known.error)))
            }
        }
    }

    /// By how much the store's clock has stepped, in milliseconds, if it has.
    pub(crate) fn step(&self) -> Option<i64> {
        match self {
            ClockEstimate::Stepped { from, to, .. } => Some(to.offset.saturating_sub(from.offset) / 1_000),
            ClockEstimate::Nothing | ClockEstimate::Time(_) => None,
        }
    }

    /// Whether the estimate is good enough to claim tasks.
    pub(crate) fn is_certain(&self, at: Duration, max_error: Duration) -> bool {
        matches!(self, ClockEstimate::Time(known) if known.error_at(at) <= max_error)
    }
}

/// The offset of a clock that shows `shown` now, at `elapsed`, in microseconds.
pub(crate) fn offset(shown: Timestamp, elapsed: Duration) -> i64 {
    micros(Duration::from_millis(shown.as_millis())).saturating_sub(micros(elapsed))
}

pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: u64 = 1_800_000_000_000;
    const HOUR: i64 = 3_600_000;

    /// A reading at `second` of a store's clock that is `ahead` ms of the right time; its answer took `took` ms.
    fn read(second: u64, ahead: i64, took: u64) -> Reading {
        let asked = Duration::from_secs(second);
        let answered = asked + Duration::from_millis(took);
        let right = EPOCH + second * 1_000 + took / 2;
        Reading::new(Timestamp::from_millis(right.saturating_add_signed(ahead)), asked, answered)
    }

    /// A machine's clock that is `ahead` ms of the right time.
    fn wall(ahead: i64) -> i64 {
        (EPOCH as i64 + ahead) * 1_000
    }

    /// By how many milliseconds the estimate is ahead of the right time, after a reading of 2 ms; it is 1 ms behind
    /// what was read.
    fn ahead(known: ClockEstimate) -> i64 {
        (known.offset().unwrap() - wall(0)) / 1_000 + 1
    }

    fn certain(known: ClockEstimate, second: u64) -> bool {
        known.is_certain(Duration::from_secs(second), MAX_ERROR)
    }

    #[test]
    fn the_first_reading_is_taken_whatever_the_machines_clock_shows() {
        for wrong in [0, HOUR, -HOUR] {
            let known = ClockEstimate::Nothing.after(read(5, 0, 2), wall(wrong), MAX_ERROR);
            assert_eq!((ahead(known), certain(known, 5)), (0, true));
        }
    }

    #[test]
    fn a_reading_that_took_long_is_not_certain_and_a_quick_one_replaces_it() {
        let slow = ClockEstimate::Nothing.after(read(0, 300, 1_200), wall(0), MAX_ERROR);
        assert!(!certain(slow, 2));
        let quick = slow.after(read(3, 0, 2), wall(0), MAX_ERROR);
        assert_eq!((ahead(quick), certain(quick, 3)), (0, true));
        assert_eq!(quick.after(read(5, 300, 1_200), wall(0), MAX_ERROR), quick, "the better one is kept");
    }

    #[test]
    fn the_time_is_never_ahead_of_the_stores_however_long_each_way_took() {
        let asked = Duration::from_secs(7);
        for (there, back) in [(0, 40), (40, 0), (20, 20), (1, 3)] {
            for shown_us in [0, 1, 500, 999] {
                // The store's clock shows whole milliseconds.
                let read_at = asked + Duration::from_millis(there);
                let right = wall(0) + shown_us + micros(read_at);
                let shown = Timestamp::from_millis((right / 1_000) as u64);
                let reading = Reading::new(shown, asked, read_at + Duration::from_millis(back));
                let offset = ClockEstimate::Nothing.after(reading, wall(0), MAX_ERROR).offset().unwrap();
                let behind = wall(0) + shown_us - offset;
                assert!((0..=1_000 * (there + back) as i64 + 1_000).contains(&behind), "{there} {back}: {behind}");
            }
        }
    }

    #[test]
    fn a_reading_becomes_uncertain_with_age() {
        let known = ClockEstimate::Nothing.after(read(0, 0, 2), wall(0), MAX_ERROR);
        // 500 ms at 200 millionths are 2,500 s.
        assert!(certain(known, 2_400) && !certain(known, 2_600));
        assert_eq!(
            ahead(known.after(read(2_600, 1_400, 2), wall(0), MAX_ERROR)),
            1_400,
            "what is that old is replaced"
        );
        let stepped = known.after(read(86_400, HOUR, 2), wall(0), MAX_ERROR);
        assert_eq!((ahead(stepped), stepped.step()), (0, Some(HOUR)), "but not by any time at all");
    }

    #[test]
    fn small_differences_are_followed_at_once() {
        let known =
            ClockEstimate::Nothing.after(read(0, 0, 2), wall(0), MAX_ERROR).after(read(5, -900, 2), wall(0), MAX_ERROR);
        assert_eq!((ahead(known), certain(known, 5)), (-900, true));
    }

    #[test]
    fn a_long_step_is_followed_only_if_the_machines_clock_agrees() {
        let known = ClockEstimate::Nothing.after(read(0, 0, 2), wall(0), MAX_ERROR);
        let mut stepped = known.after(read(5, HOUR, 2), wall(0), MAX_ERROR);
        for second in [6, 60, 86_400] {
            assert_eq!((ahead(stepped), certain(stepped, second), stepped.step()), (0, false, Some(HOUR)), "{second}");
            stepped = stepped.after(read(second, HOUR, 2), wall(0), MAX_ERROR);
        }
        let agreed = stepped.after(read(86_401, HOUR, 2), wall(HOUR + 400), MAX_ERROR);
        assert_eq!((ahead(agreed), certain(agreed, 86_401), agreed.step()), (HOUR, true, None));
    }

    #[test]
    fn one_reading_alone_is_no_step_even_if_the_machines_clock_agrees() {
        let known = ClockEstimate::Nothing.after(read(0, 0, 2), wall(HOUR), MAX_ERROR);
        let stepped = known.after(read(5, HOUR, 2), wall(HOUR), MAX_ERROR);
        assert_eq!((ahead(stepped), certain(stepped, 5)), (0, false));
        assert_eq!(ahead(stepped.after(read(6, HOUR, 2), wall(HOUR), MAX_ERROR)), HOUR);
        let back = stepped.after(read(6, 0, 2), wall(HOUR), MAX_ERROR);
        assert_eq!((ahead(back), certain(back, 6)), (0, true));
    }

    #[test]
    fn a_short_step_that_lasts_is_followed() {
        let stepped = ClockEstimate::Nothing.after(read(0, 0, 2), wall(HOUR), MAX_ERROR).after(
            read(5, 30_000, 2),
            wall(HOUR),
            MAX_ERROR,
        );
        let stepped = stepped.after(read(10, 30_000, 2), wall(HOUR), MAX_ERROR);
        assert!(!certain(stepped, 10));
        assert_eq!(ahead(stepped.after(read(15, 30_000, 2), wall(HOUR), MAX_ERROR)), 30_000);
        // A step that changes again does not last.
        let elsewhere =
            stepped.after(read(14, 40_000, 2), wall(HOUR), MAX_ERROR).after(read(16, 40_000, 2), wall(HOUR), MAX_ERROR);
        assert_eq!((ahead(elsewhere), elsewhere.step()), (0, Some(40_000)));
    }

    #[test]
    fn short_leases_need_a_better_time() {
        for (margin, error) in [(1_000, 200), (2_000, 400), (15_000, 500)] {
            assert_eq!(max_error(Duration::from_millis(margin)), Duration::from_millis(error));
        }
    }

    #[test]
    fn a_reading_that_took_long_is_no_step() {
        let known = ClockEstimate::Nothing.after(read(0, 0, 2), wall(0), MAX_ERROR);
        assert_eq!(known.after(read(5, HOUR, 1_500), wall(HOUR), MAX_ERROR), known);
    }
}
