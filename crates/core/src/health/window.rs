//! The tallies of the last hour, minute by minute.

use std::time::Duration;

use super::Tally;
use crate::time::Timestamp;

/// The minutes that are kept.
const MINUTES: usize = 60;

const MINUTE_MS: u64 = 60_000;

/// The tallies of the last hour. The newest minute is under way, so that an hour is between 59 and 60 minutes.
#[derive(Debug, Clone)]
pub struct Window {
    /// Each with the number of its minute, which it is stored at modulo [`MINUTES`].
    minutes: [(u64, Tally); MINUTES],
}

impl Default for Window {
    fn default() -> Self {
        Window { minutes: [(0, Tally::default()); MINUTES] }
    }
}

impl Window {
    /// The longest time that a sum covers.
    pub const LONGEST: Duration = Duration::from_millis(MINUTES as u64 * MINUTE_MS);

    /// Adds what ended at `at`. What ended more than an hour before the newest is not counted.
    pub fn add(&mut self, tally: &Tally, at: Timestamp) {
        let minute = minute(at);
        let (stored, sum) = &mut self.minutes[(minute % MINUTES as u64) as usize];
        if *stored < minute {
            (*stored, *sum) = (minute, Tally::default());
        }
        if *stored == minute {
            sum.add(tally);
        }
    }

    /// What ended in the last `span` before `now`, rounded up to whole minutes. What is stamped later than `now` counts: the
    /// clock was set back.
    pub fn sum(&self, span: Duration, now: Timestamp) -> Tally {
        let minutes = span.as_millis().div_ceil(u128::from(MINUTE_MS)).min(MINUTES as u128) as u64;
        let now = minute(now);
        let mut sum = Tally::default();
        let is_recent = |stored: u64| stored + minutes > now;
        self.minutes.iter().filter(|(stored, _)| is_recent(*stored)).for_each(|(_, tally)| sum.add(tally));
        sum
    }

    /// Whether nothing has ended in the last hour.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.sum(Self::LONGEST, now) == Tally::default()
    }
}

/// The number of a minute, from 1: zero is no minute.
fn minute(at: Timestamp) -> u64 {
    at.as_millis() / MINUTE_MS + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 * MINUTE_MS + minute * MINUTE_MS)
    }

    fn ended(ended: u32) -> Tally {
        Tally { ended, ..Tally::default() }
    }

    fn hour(window: &Window, now: Timestamp) -> u32 {
        window.sum(Window::LONGEST, now).ended
    }

    #[test]
    fn a_sum_covers_the_minutes_of_its_span() {
        let mut window = Window::default();
        assert!(window.is_idle(at(0)));
        for minute in 0..200 {
            window.add(&ended(1), at(minute));
        }
        for (span_s, expected) in [(0, 0), (1, 1), (60, 1), (61, 2), (600, 10), (3_600, 60), (90_000, 60)] {
            assert_eq!(window.sum(Duration::from_secs(span_s), at(199)).ended, expected, "{span_s} s");
        }
        assert_eq!([hour(&window, at(229)), hour(&window, at(258)), hour(&window, at(259))], [30, 1, 0]);
        assert!(!window.is_idle(at(258)) && window.is_idle(at(259)));
    }

    #[test]
    fn a_clock_that_was_set_back_loses_nothing_and_counts_nothing_twice() {
        let mut window = Window::default();
        window.add(&ended(5), at(100));
        assert_eq!(hour(&window, at(90)), 5, "stamped later than now");
        window.add(&ended(1), at(90));
        assert_eq!([hour(&window, at(90)), hour(&window, at(100))], [6, 6]);
        window.add(&ended(1), at(40));
        assert_eq!(hour(&window, at(100)), 6, "an hour before a minute that is stored at the same place");
    }
}
