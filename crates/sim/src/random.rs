//! Seeded randomness. Everything that is drawn in a world comes from a [`Random`] with the world's seed.
//!
//! Each part of a world draws from a stream of its own. So leaving one fault out of a plan does not change what another
//! part draws, which makes it possible to shrink a failure.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A stream of random numbers (xoshiro256++, seeded by splitmix64).
#[derive(Debug, Clone, Hash)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream with this number under this seed.
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut mixed = seed ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03);
        Random { state: std::array::from_fn(|_| splitmix(&mut mixed)) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let drawn = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        drawn
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns true with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Uniform below `bound`; zero if that is zero.
    pub fn below(&mut self, bound: usize) -> usize {
        // The high half of a product: the bias is far too small to have an effect.
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// Uniform within `range`.
    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = (*range.start(), *range.end());
        low + self.below(usize::try_from(high.saturating_sub(low)).unwrap_or(usize::MAX - 1) + 1) as u64
    }

    /// A duration within these bounds, uniform in its order of magnitude.
    pub fn duration(&mut self, shortest: Duration, longest: Duration) -> Duration {
        let (low, high) = (shortest.as_secs_f64().max(1e-6), longest.as_secs_f64().max(1e-6));
        let drawn = low * (high / low).powf(self.unit());
        Duration::from_micros((drawn * 1e6) as u64).clamp(shortest, longest.max(shortest))
    }

    /// A seed for one of many streams, from the numbers that identify it.
    pub fn seed_of(parts: &[u64]) -> u64 {
        parts.iter().fold(0, |seed, part| Random::stream(seed, *part).bits())
    }

    /// Fills `bytes` with random ones.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            let drawn = self.bits().to_le_bytes();
            part.copy_from_slice(&drawn[..part.len()]);
        }
    }

    /// One of `choices`, which must not be empty.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_decided_by_its_seed_and_number() {
        let draw = |seed, stream| {
            let mut random = Random::stream(seed, stream);
            [random.bits(), random.bits(), random.bits()]
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn draws_stay_within_their_bounds_and_reach_both_ends() {
        let mut random = Random::stream(7, 0);
        let drawn: Vec<u64> = (0..1_000).map(|_| random.within(3..=6)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&6)));
        assert_eq!(random.below(0), 0);
        for _ in 0..1_000 {
            let wait = random.duration(Duration::from_millis(1), Duration::from_secs(1));
            assert!(wait >= Duration::from_millis(1) && wait <= Duration::from_secs(1), "{wait:?}");
            assert!((0.0..1.0).contains(&random.unit()));
        }
    }
}
