//! Random draws: each is a function of the seed and of its purpose.
//!
//! There is no generator with a state: the latency of client 7's second attempt is the same number in every run of a
//! seed. So all contenders get the same arrivals, latencies and draws of jitter, and only their policies differ (common
//! random numbers, in statistics).

use crate::elementary::ln;

/// The purpose of a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// When a client's request arrives.
    Arrival = 1,
    /// How long an attempt is served.
    Latency = 2,
    /// How long a retry waits.
    Jitter = 3,
    /// How long a breaker is open.
    Pause = 4,
    /// How long a message is on its way.
    Hop = 5,
}

/// The source of all draws of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chance {
    seed: u64,
}

impl Chance {
    /// The draws of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Chance { seed: mix(seed ^ 0x5ca1_ab1e_0ddb_a115) }
    }

    /// A number in [0, 1) for the `nth` of `whose`.
    pub(crate) fn unit(&self, purpose: Purpose, whose: u64, nth: u64) -> f64 {
        unit(self.bits(purpose, whose, nth))
    }

    /// A number from the standard normal distribution for the `nth` of `whose`.
    pub(crate) fn normal(&self, purpose: Purpose, whose: u64, nth: u64) -> f64 {
        let mut bits = self.bits(purpose, whose, nth);
        // Marsaglia's polar method: points in a square, until one is in the circle. Three in four are.
        loop {
            let x = 2.0 * unit(bits) - 1.0;
            bits = mix(bits.wrapping_add(STEP));
            let y = 2.0 * unit(bits) - 1.0;
            bits = mix(bits.wrapping_add(STEP));
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                return x * (-2.0 * ln(square) / square).sqrt();
            }
        }
    }

    fn bits(&self, purpose: Purpose, whose: u64, nth: u64) -> u64 {
        let which = mix(whose.wrapping_mul(STEP) ^ ((purpose as u64) << 56) ^ nth.rotate_right(24));
        mix(self.seed ^ which)
    }
}

/// The golden ratio's fraction in 64 bits, an odd number: multiples of it are spread evenly.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Scrambles 64 bits one to one (the finalizer of SplitMix64).
fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(STEP);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The upper 53 bits as a number in [0, 1).
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 200_000;

    fn mean_and_variance(draws: impl Iterator<Item = f64>) -> (f64, f64) {
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for draw in draws {
            (count, sum, squares) = (count + 1.0, sum + draw, squares + draw * draw);
        }
        (sum / count, squares / count - (sum / count) * (sum / count))
    }

    #[test]
    fn a_draw_depends_on_the_seed_the_purpose_and_whose_it_is_and_on_nothing_else() {
        let chance = Chance::new(1);
        let draw = chance.unit(Purpose::Latency, 7, 2);
        assert_eq!(Chance::new(1).unit(Purpose::Latency, 7, 2), draw);
        for other in [
            Chance::new(2).unit(Purpose::Latency, 7, 2),
            chance.unit(Purpose::Jitter, 7, 2),
            chance.unit(Purpose::Latency, 8, 2),
            chance.unit(Purpose::Latency, 7, 3),
            chance.unit(Purpose::Latency, 2, 7),
        ] {
            assert_ne!(other, draw);
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_numbers_on_every_machine() {
        let chance = Chance::new(42);
        let drawn = [chance.unit(Purpose::Arrival, 0, 0), chance.normal(Purpose::Hop, 3, 1)];
        assert_eq!(drawn.map(f64::to_bits), SEED_42, "{drawn:?}");
    }

    const SEED_42: [u64; 2] = [4_596_739_819_351_256_140, 4_595_798_351_017_547_089];

    #[test]
    fn units_are_spread_evenly_between_clients_and_between_attempts() {
        let chance = Chance::new(9);
        let clients = (0..DRAWS).map(|client| chance.unit(Purpose::Jitter, client, 1));
        let attempts = (0..DRAWS).map(|attempt| chance.unit(Purpose::Jitter, 1, attempt));
        for (mean, variance) in [mean_and_variance(clients), mean_and_variance(attempts)] {
            assert!((mean - 0.5).abs() < 0.003 && (variance - 1.0 / 12.0).abs() < 0.001, "{mean} {variance}");
        }
    }

    #[test]
    fn normal_draws_have_their_mean_their_variance_and_their_tails() {
        let chance = Chance::new(9);
        let draws = || (0..DRAWS).map(|client| chance.normal(Purpose::Hop, client, 1));
        let (mean, variance) = mean_and_variance(draws());
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.015, "{mean} {variance}");
        let beyond = draws().filter(|draw| draw.abs() > 2.0).count() as f64 / DRAWS as f64;
        assert!((beyond - 0.0455).abs() < 0.002, "{beyond}");
    }
}
