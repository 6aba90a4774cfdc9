//! The defaults of a policy: the standard's exponential backoff with full jitter, one second
//! doubling up to thirty, and the context's attempts and time. A policy without a context has the
//! defaults of `event`: five retries within a day.

use std::time::Duration;

use super::{BackoffKind, Context, Policy};
use crate::backoff::Backoff;
use crate::jitter::Jitter;

pub(super) const INITIAL_DELAY: Duration = Duration::from_secs(1);
pub(super) const MULTIPLIER: f64 = 2.0;
pub(super) const MAX_DELAY: Duration = Duration::from_secs(30);
pub(super) const JITTER_RATIO: f64 = 0.2;

/// What depends on the context.
pub(super) struct Defaults {
    pub(super) backoff: BackoffKind,
    /// The waits before the retries, where the backoff is a schedule.
    pub(super) schedule_ms: &'static [u64],
    pub(super) max_attempts: u32,
    pub(super) total_budget: Duration,
    pub(super) attempt_timeout: Duration,
    pub(super) connect_timeout: Duration,
}

impl Defaults {
    pub(super) fn of(context: Option<Context>) -> Self {
        let context = context.unwrap_or(Context::Event);
        // Four attempts of five seconds and the longest waits between them come to 27 s: within the 30 s of R-3.
        let (attempt, connect) = if context.is_waited_for() { (5, 2) } else { (30, 5) };
        Defaults {
            backoff: context.schedule_ms().map_or(BackoffKind::Exponential, |_| BackoffKind::Schedule),
            schedule_ms: context.schedule_ms().unwrap_or_default(),
            max_attempts: context.default_retries() + 1,
            total_budget: context.duration_cap(),
            attempt_timeout: Duration::from_secs(attempt),
            connect_timeout: Duration::from_secs(connect),
        }
    }
}

/// The policy of an empty spec.
impl Default for Policy {
    fn default() -> Self {
        let Defaults { max_attempts, total_budget, attempt_timeout, connect_timeout, .. } = Defaults::of(None);
        Policy {
            context: None,
            max_attempts,
            backoff: Backoff::Exponential { initial: INITIAL_DELAY, multiplier: MULTIPLIER, max: MAX_DELAY },
            jitter: Jitter::Full,
            total_budget,
            attempt_timeout,
            connect_timeout,
            retryable_status_codes: None,
            retry_after_max: None,
            pause_on_gone: false,
        }
    }
}
