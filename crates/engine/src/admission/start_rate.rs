//! A rate limit on the starts of all slow lanes together.
//!
//! Lanes that receive their backlogs at the same time start, end, settle and claim at the same time, every few seconds,
//! and healthy lanes wait meanwhile. A delay per lane does not help: the slot that a delayed lane leaves free goes to
//! the next lane in the queue at the same moment. So there is one limit for the whole slow pool. It is twice the rate
//! at which the pool's slots can turn over, so that it limits bursts only.

use std::time::Duration;

use redrive_core::Latency;

/// No limit while attempts are shorter than this on average: a burst that overloads this machine also makes healthy
/// lanes slow.
const LONG: Duration = Duration::from_secs(1);
/// Starts are granted in portions of this length: a claim of one task costs nearly as much as a claim of twenty.
const PORTION: Duration = Duration::from_millis(20);

/// The longest time between two starts: 100 starts per second cost other lanes nothing.
const WIDEST: Duration = Duration::from_millis(10);

/// Rate limit of the slow pool's starts. Times are monotonic.
#[derive(Debug)]
pub(crate) struct StartRate {
    /// Slots that slow lanes may hold.
    capacity: u32,
    /// How long an attempt holds a slot, its rest included.
    slot_time: Latency,
    /// Starts are booked up to this time.
    booked: Duration,
}

impl StartRate {
    /// For slow lanes that may hold this many slots together.
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = u32::try_from(capacity).unwrap_or(u32::MAX).max(1);
        StartRate { capacity, slot_time: Latency::default(), booked: Duration::ZERO }
    }

    /// Records an attempt that held its slot for `held`.
    pub(crate) fn record(&mut self, held: Duration) {
        self.slot_time.record(held);
    }

    /// How many attempts may start now.
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

    /// When the next portion may start, once what may start now has been granted: always after `now`.
    pub(crate) fn next_portion(&self, now: Duration) -> Duration {
        self.booked.max(now) + PORTION
    }

    /// Counts starts against the limit.
    pub(crate) fn take(&mut self, starts: usize, now: Duration) {
        self.booked = self.booked.max(now.saturating_sub(PORTION)) + self.time_of(starts);
    }

    /// Takes back starts that were counted and not made.
    pub(crate) fn give_back(&mut self, starts: usize) {
        self.booked = self.booked.saturating_sub(self.time_of(starts));
    }

    fn time_of(&self, starts: usize) -> Duration {
        self.spacing() * u32::try_from(starts).unwrap_or(u32::MAX)
    }

    /// The time between two starts: half of the time in which the slots turn over.
    fn spacing(&self) -> Duration {
        let slot_time = self.slot_time.estimate();
        if slot_time < LONG { Duration::ZERO } else { (slot_time / 2 / self.capacity).min(WIDEST) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn after(held: Duration) -> StartRate {
        let mut rate = StartRate::new(2_000);
        rate.record(held);
        rate
    }

    #[test]
    fn attempts_of_4_s_start_one_a_millisecond_in_portions_of_twenty() {
        let mut rate = after(Duration::from_secs(4));
        assert_eq!(rate.starts(NOW), 21, "none has started for long");
        rate.take(21, NOW);
        assert_eq!(rate.starts(NOW), 0);
        let next = rate.next_portion(NOW);
        assert_eq!((next - NOW, rate.starts(next)), (Duration::from_millis(21), 21));
        rate.give_back(21);
        assert_eq!(rate.starts(NOW), 21);
    }

    #[test]
    fn the_next_portion_is_later_than_now_whether_or_not_starts_were_taken() {
        let mut rate = after(Duration::from_nanos(1_279_840_148));
        for _ in 0..100 {
            let next = rate.next_portion(NOW);
            assert!(next >= NOW + PORTION && rate.starts(next) > 0);
            rate.take(1, NOW);
        }
    }

    #[test]
    fn nothing_is_held_back_while_attempts_are_short_or_nothing_is_known() {
        for rate in [StartRate::new(2_000), after(LONG - Duration::from_millis(1))] {
            assert_eq!(rate.starts(NOW), usize::MAX);
        }
    }

    #[test]
    fn few_slots_and_long_attempts_start_a_hundred_times_a_second() {
        let mut rate = StartRate::new(0);
        rate.record(Duration::from_secs(60));
        let mut started = 0;
        for millisecond in 0..1_000 {
            let now = NOW + Duration::from_millis(millisecond);
            let starts = rate.starts(now);
            rate.take(starts, now);
            started += starts;
        }
        assert_eq!(started, 102, "and two that might have started before");
    }
}
