//! Shared floor: one floor for all lanes of a tenant that call one origin and are not healthy.
//!
//! A lane is named by its caller. If each name had a floor of its own, a caller could send a failing dependency ten
//! retries per name and window. So retries that a lane's first attempts do not earn are also counted here, once per
//! tenant and origin, for as long as the lane is not healthy.

use crate::guards::budget;
use crate::guards::window::{self, Entry, Window};
use crate::time::Timestamp;

/// The retries beyond the percentage that lanes of one tenant and origin were granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedFloor {
    floor: u32,
    window: Window<1>,
}

impl SharedFloor {
    /// An unused floor, of the size that these settings give a lane.
    pub fn new(settings: &budget::Settings) -> Self {
        let buckets = window::buckets_of(settings.window, settings.bucket).min(budget::Settings::MAX_BUCKETS);
        SharedFloor { floor: settings.floor, window: Window::new(settings.bucket, buckets + 1) }
    }

    /// How many retries could be taken now.
    pub fn left(&mut self, now: Timestamp) -> u64 {
        self.window.advance(now);
        u64::from(self.floor).saturating_sub(self.window.sums()[0])
    }

    /// Whether nothing is counted: it can be forgotten.
    pub fn is_unused(&mut self, now: Timestamp) -> bool {
        self.window.advance(now);
        self.window.sums() == [0]
    }

    /// Takes one.
    pub(super) fn take(&mut self, now: Timestamp) -> Entry {
        self.window.advance(now);
        self.window.count(0)
    }

    /// Returns one that was refunded, or not used.
    pub(super) fn give_back(&mut self, entry: Entry) {
        self.window.take_back(entry, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn what_is_taken_is_missing_for_a_window_or_until_it_is_given_back() {
        let mut floor = SharedFloor::new(&budget::Settings::default());
        let taken: Vec<_> = (0..10).map(|_| floor.take(at(7_300))).collect();
        assert_eq!((floor.left(at(7_300)), floor.is_unused(at(7_300))), (0, false));
        floor.give_back(taken[0]);
        assert_eq!((floor.left(at(37_999)), floor.left(at(38_000))), (1, 10));
        assert!(floor.is_unused(at(38_000)));
    }
}
