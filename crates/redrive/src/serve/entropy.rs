//! Randomness of the running service.

use std::cell::RefCell;

use rand::rngs::SmallRng;
use rand::{Rng, make_rng};
use redrive_engine::entropy::Entropy;

thread_local! {
    /// One generator per thread, so that drawing takes no lock; each seeded with 256 bits of the operating system's.
    static GENERATOR: RefCell<SmallRng> = RefCell::new(make_rng());
}

/// xoshiro256++, a generator per thread. Not for secrets: it spreads retries out and makes ids and keys differ.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadEntropy;

impl Entropy for ThreadEntropy {
    fn bits(&self) -> u64 {
        GENERATOR.with_borrow_mut(SmallRng::next_u64)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn threads_draw_different_numbers() {
        let draw = || std::thread::spawn(|| ThreadEntropy.bits());
        let drawn: Vec<_> = (0..8).map(|_| draw()).collect();
        let distinct: BTreeSet<u64> = drawn.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(distinct.len(), 8);
    }
}
