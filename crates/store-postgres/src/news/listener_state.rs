//! Detection of lost notifications.
//!
//! Notifications arrive in the order of their commits. So a process sends a probe to itself now and then. If the probe
//! comes back, and the process has listened without a break since the last one, it has received everything in between.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The state of this process's listener.
#[derive(Debug)]
pub(crate) struct ListenerState {
    has_missed: AtomicBool,
    said: AtomicU64,
    heard: AtomicU64,
}

impl Default for ListenerState {
    /// The numbers start at a random value, so that they differ from those of another process with the same name.
    fn default() -> Self {
        let first = RandomState::new().hash_one(()) >> 1;
        ListenerState { has_missed: AtomicBool::new(false), said: AtomicU64::new(first), heard: AtomicU64::new(first) }
    }
}

impl ListenerState {
    /// Records that a notification may have been lost, or that a change was not announced.
    pub(crate) fn missed(&self) {
        self.has_missed.store(true, Ordering::Release);
    }

    /// The number of the next probe.
    pub(crate) fn next_probe(&self) -> u64 {
        self.said.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Records that a probe has come back.
    pub(crate) fn heard_probe(&self, number: u64) {
        if number <= self.said.load(Ordering::Acquire) {
            self.heard.fetch_max(number, Ordering::AcqRel);
        }
    }

    /// Whether a notification may have been missed since the last call, or the last probe has not come back.
    pub(crate) fn has_missed(&self) -> bool {
        let has_missed = self.has_missed.swap(false, Ordering::AcqRel);
        has_missed || self.heard.load(Ordering::Acquire) < self.said.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ear_that_hears_its_probes_has_missed_nothing() {
        let ear = ListenerState::default();
        assert!(!ear.has_missed());
        let probe = ear.next_probe();
        assert!(ear.has_missed(), "the probe is not back");
        assert!(ear.has_missed(), "nor is it now");
        ear.heard_probe(probe);
        assert!(!ear.has_missed());
    }

    #[test]
    fn a_break_is_noticed_once_whatever_comes_back() {
        let ear = ListenerState::default();
        ear.heard_probe(ear.next_probe());
        ear.missed();
        assert!(ear.has_missed());
        assert!(!ear.has_missed());
    }
}
