//! Horizon: how far ahead of free slots and due times tasks are claimed.
//!
//! A claim is durable before the send, so it takes a commit. Without claiming ahead, slots would be idle during every
//! commit, and every due task would be late by one commit. But a task that is claimed and not sent costs an attempt if
//! the process dies. So a lane claims only what it will send within a *window* of about two commits, as measured.

use std::time::Duration;

use redrive_core::Latency;

/// The shortest window.
pub(crate) const SHORTEST: Duration = Duration::from_millis(5);
/// The longest window, however slow the store is.
pub(crate) const LONGEST: Duration = Duration::from_millis(50);
/// A long claim counts for this long, and at most twice as long.
const PEAK_COUNTS: Duration = Duration::from_secs(5);

/// The measured duration of claims.
#[derive(Debug, Clone, Default)]
pub(crate) struct Horizon {
    claims: Latency,
    /// The longest claim of this period, and of the one before.
    peaks: [Duration; 2],
    period_ends: Duration,
}

impl Horizon {
    /// Records a claim that took `took`, its commit included, and ended at the elapsed time `now`.
    pub(crate) fn record(&mut self, took: Duration, now: Duration) {
        self.claims.record(took);
        if now >= self.period_ends {
            let is_next = now < self.period_ends + PEAK_COUNTS;
            self.peaks = [Duration::ZERO, if is_next { self.peaks[0] } else { Duration::ZERO }];
            self.period_ends = now + PEAK_COUNTS;
        }
        self.peaks[0] = self.peaks[0].max(took);
    }

    /// How long before they are due tasks are claimed: the lead, and one claim more. So one claim takes everything that
    /// becomes due meanwhile instead of one task at a time.
    pub(crate) fn window(&self) -> Duration {
        self.lead() + self.sending_time() / 2
    }

    /// How long before the first due time the next claim begins. The duration of claims varies: the longest recent one
    /// counts, otherwise every long one would make tasks late.
    pub(crate) fn lead(&self) -> Duration {
        let [this, before] = self.peaks;
        this.max(before).clamp(SHORTEST / 2, LONGEST / 2)
    }

    /// The time of two claims, usually: a lane claims ahead of its slots what it sends within this time.
    fn sending_time(&self) -> Duration {
        (self.claims.estimate() * 2).clamp(SHORTEST, LONGEST)
    }

    /// How many tasks a lane with this many slots sends within the window beyond those that get a slot at once. Zero
    /// while it is unknown how long an attempt holds its slot.
    pub(crate) fn ahead(&self, slots: usize, slot_time: Option<Duration>, most: usize) -> usize {
        let Some(slot_time) = slot_time else { return 0 };
        let tasks = self.sending_time().as_nanos() * slots as u128 / slot_time.as_nanos().max(1);
        usize::try_from(tasks).unwrap_or(usize::MAX).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn after_claims_of(took: Duration) -> Horizon {
        let mut horizon = Horizon::default();
        horizon.record(took, Duration::ZERO);
        horizon
    }

    #[test]
    fn the_window_is_two_claims_within_bounds() {
        for (claim, window) in [(0, 5), (2, 5), (3, 6), (10, 20), (25, 50), (4_000, 50)] {
            assert_eq!(after_claims_of(millis(claim)).window(), millis(window), "claims of {claim} ms");
        }
        assert_eq!(Horizon::default().window(), SHORTEST);
    }

    #[test]
    fn the_lead_covers_the_longest_claim_of_late() {
        let mut horizon = Horizon::default();
        // When a claim ends, in ms, what it took, and the lead after it.
        let claims = [
            (0, 10, 10),
            (100, 1, 10),
            (5_100, 1, 10),
            (5_200, 2, 10),
            (10_200, 7, 7),
            (11_000, 60, 25),
            (99_000, 1, 2),
        ];
        for (now, took, lead) in claims {
            horizon.record(millis(took), millis(now));
            assert_eq!(horizon.lead().as_millis(), lead, "after a claim of {took} ms at {now} ms");
        }
    }

    #[test]
    fn a_lane_claims_ahead_what_it_sends_within_the_window() {
        let horizon = after_claims_of(millis(5));
        // slots, slot time in ms, ahead
        for (slots, slot_time, ahead) in [(10, 1, 100), (10, 4, 25), (3, 7, 4), (1, 10, 1), (1, 11, 0), (128, 4_000, 0)]
        {
            assert_eq!(horizon.ahead(slots, Some(millis(slot_time)), 256), ahead, "{slots} slots of {slot_time} ms");
        }
        assert_eq!(horizon.ahead(128, Some(Duration::ZERO), 256), 256, "never more than the bound");
        assert_eq!(horizon.ahead(128, None, 256), 0);
    }
}
