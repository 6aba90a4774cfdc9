//! What a policy says where its spec is silent: the standard's exponential backoff with full jitter, one second
//! doubling up to thirty, five retries within a day.

use std::time::Duration;

use super::Policy;
use crate::backoff::Backoff;
use crate::jitter::Jitter;

pub(super) const MAX_ATTEMPTS: u32 = 6;
pub(super) const INITIAL_DELAY: Duration = Duration::from_secs(1);
pub(super) const MULTIPLIER: f64 = 2.0;
pub(super) const MAX_DELAY: Duration = Duration::from_secs(30);
pub(super) const JITTER_RATIO: f64 = 0.2;
pub(super) const TOTAL_BUDGET: Duration = Duration::from_secs(24 * 60 * 60);
pub(super) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The policy of an empty spec.
impl Default for Policy {
    fn default() -> Self {
        Policy {
            max_attempts: MAX_ATTEMPTS,
            backoff: Backoff::Exponential { initial: INITIAL_DELAY, multiplier: MULTIPLIER, max: MAX_DELAY },
            jitter: Jitter::Full,
            total_budget: TOTAL_BUDGET,
            attempt_timeout: ATTEMPT_TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
            retryable_status_codes: None,
            retry_after_max: None,
        }
    }
}
