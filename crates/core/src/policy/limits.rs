//! The bounds of every field of a policy, each with its name.
//!
//! They are wide: they only keep arithmetic, storage and leases within bounds. What is advisable is a matter of the
//! retry standard (`redrive_standard`).

use std::ops::RangeInclusive;
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);
const MONTH: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The bounds of a policy's fields, as constants.
#[derive(Debug)]
pub enum Limits {}

impl Limits {
    /// `maxAttempts`, the first send included.
    pub const MAX_ATTEMPTS: RangeInclusive<u32> = 1..=100;
    /// `initialDelayMs` and `maxDelayMs`.
    pub const DELAY: RangeInclusive<Duration> = MILLISECOND..=MONTH;
    /// `multiplier`.
    pub const MULTIPLIER: RangeInclusive<f64> = 1.0..=100.0;
    /// The number of delays in `scheduleMs`.
    pub const SCHEDULE_ENTRIES: RangeInclusive<usize> = 1..=100;
    /// Each delay in `scheduleMs`; zero is a retry at once.
    pub const SCHEDULE_DELAY: RangeInclusive<Duration> = Duration::ZERO..=MONTH;
    /// `jitterRatio` is above zero and at most this: a larger one would draw negative waits.
    pub const MAX_JITTER_RATIO: f64 = 1.0;
    /// `totalBudgetMs`.
    pub const TOTAL_BUDGET: RangeInclusive<Duration> = MILLISECOND..=MONTH;
    /// `attemptTimeoutMs`; leases are longer than this, so it also bounds how long a crash goes unnoticed.
    pub const ATTEMPT_TIMEOUT: RangeInclusive<Duration> = MILLISECOND..=Duration::from_secs(15 * 60);
    /// `connectTimeoutMs`, which moreover is at most the attempt timeout.
    pub const CONNECT_TIMEOUT: RangeInclusive<Duration> = Self::ATTEMPT_TIMEOUT;
    /// The codes in `retryableStatusCodes`; a 2xx is a success and is never retried.
    pub const RETRYABLE_STATUS: RangeInclusive<u16> = 300..=599;
    /// `retryAfterMaxMs`; zero waits for no Retry-After at all.
    pub const RETRY_AFTER_MAX: RangeInclusive<Duration> = Duration::ZERO..=MONTH;
}
