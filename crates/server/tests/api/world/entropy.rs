//! Randomness that is the same in every run, and that can be made to fail.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use redrive_engine::entropy::Entropy;

#[derive(Default)]
pub(crate) struct Countable {
    drawn: AtomicU64,
    panics: AtomicBool,
}

impl Countable {
    /// Makes the next draw panic.
    pub(crate) fn panic_next(&self) {
        self.panics.store(true, Ordering::Relaxed);
    }
}

impl Entropy for Countable {
    fn bits(&self) -> u64 {
        assert!(!self.panics.swap(false, Ordering::Relaxed), "the test asked for this panic");
        self.drawn.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn unit(&self) -> f64 {
        0.5
    }
}
