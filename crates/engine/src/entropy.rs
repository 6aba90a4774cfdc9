//! Randomness (injected): the engine's only source of random numbers.

/// A source of random numbers.
pub trait Entropy: Send + Sync + 'static {
    /// 64 random bits.
    fn bits(&self) -> u64;

    /// Uniform in [0, 1).
    fn unit(&self) -> f64 {
        // 53 bits are what the mantissa holds: every value is as likely as the next, and 1.0 is never reached.
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}
