//! How fast the slow lanes together may start attempts.
//!
//! A thousand lanes that were given their backlogs at one moment start at one moment, and end, are settled, are claimed and
//! start again at one moment, for ever: every few seconds the healthy lanes wait until all of that is done. To hold back each
//! lane by itself does not help, because the slot that it leaves free goes to the next one in line, at that same moment. So
//! the slow lanes have one clock for all their starts. It goes twice as fast as their slots can turn over: it binds what
//! would start at one moment, and nothing else.

use std::time::Duration;

use redrive_core::Latency;

/// Attempts that are shorter than this, on the mean, may start as they like: in a burst that the machine is too slow for, all
/// of them take long.
const LONG: Duration = Duration::from_secs(1);
/// What may start in so much time may start at once: a claim of one task costs nearly as much as one of twenty.
const PORTION: Duration = Duration::from_millis(20);

/// The longest from one start to the next: a hundred a second do nobody any harm.
const WIDEST: Duration = Duration::from_millis(10);

/// The clock of the slow lanes' starts. Times are of the clock that never jumps.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Slots that slow lanes may hold.
    capacity: u32,
    /// What an attempt keeps a slot for, its rest included.
    slot_time: Latency,
    /// Starts are booked up to this time.
    booked: Duration,
}

impl Flow {
    /// For slow lanes that may hold so many slots together.
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = u32::try_from(capacity).unwrap_or(u32::MAX).max(1);
        Flow { capacity, slot_time: Latency::default(), booked: Duration::ZERO }
    }

    /// Takes in an attempt that kept its slot for `kept`.
    pub(crate) fn record(&mut self, kept: Duration) {
        self.slot_time.record(kept);
    }

    /// How many may start now.
    pub(crate) fn starts(&self, now: Duration) -> usize {
        let spacing = self.spacing();
        match now.checked_sub(self.booked) {
            _ if spacing.is_zero() => usize::MAX,
            None => 0,
            Some(unused) => {
                let more = unused.min(PORTION).as_nanos() / spacing.as_nanos();
                usize::try_from(more).unwrap_or(usize::MAX).saturating_add(1)
            }
        }
    }

    /// When the next portion may start, if none may now.
    pub(crate) fn next_portion(&self) -> Duration {
        self.booked + PORTION
    }

    /// So many start.
    pub(crate) fn take(&mut self, starts: usize, now: Duration) {
        self.booked = self.booked.max(now.saturating_sub(PORTION)) + self.time_of(starts);
    }

    /// So many that were taken did not start.
    pub(crate) fn give_back(&mut self, starts: usize) {
        self.booked = self.booked.saturating_sub(self.time_of(starts));
    }

    fn time_of(&self, starts: usize) -> Duration {
        self.spacing() * u32::try_from(starts).unwrap_or(u32::MAX)
    }

    /// From one start to the next: half of what the slots turn over in.
    fn spacing(&self) -> Duration {
        let slot_time = self.slot_time.estimate();
        if slot_time < LONG { Duration::ZERO } else { (slot_time / 2 / self.capacity).min(WIDEST) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn after(kept: Duration) -> Flow {
        let mut flow = Flow::new(2_000);
        flow.record(kept);
        flow
    }

    #[test]
    fn attempts_of_4_s_start_one_a_millisecond_in_portions_of_twenty() {
        let mut flow = after(Duration::from_secs(4));
        assert_eq!(flow.starts(NOW), 21, "none has started for long");
        flow.take(21, NOW);
        assert_eq!(flow.starts(NOW), 0);
        let next = flow.next_portion();
        assert_eq!((next - NOW, flow.starts(next)), (Duration::from_millis(21), 21));
        flow.give_back(21);
        assert_eq!(flow.starts(NOW), 21);
    }

    #[test]
    fn nothing_is_held_back_while_attempts_are_short_or_nothing_is_known() {
        for flow in [Flow::new(2_000), after(LONG - Duration::from_millis(1))] {
            assert_eq!(flow.starts(NOW), usize::MAX);
        }
    }

    #[test]
    fn few_slots_and_long_attempts_start_a_hundred_times_a_second() {
        let mut flow = Flow::new(0);
        flow.record(Duration::from_secs(60));
        let mut started = 0;
        for millisecond in 0..1_000 {
            let now = NOW + Duration::from_millis(millisecond);
            let starts = flow.starts(now);
            flow.take(starts, now);
            started += starts;
        }
        assert_eq!(started, 102, "and two that might have started before");
    }
}
