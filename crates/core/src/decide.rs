//! Decides what happens to a task after an attempt: a pure function of the policy, the run, the verdict and a random
//! draw.
//!
//! There is one rule for time, [`before_send`]: a retry is scheduled only if that rule would allow it at the moment
//! when it is due. So a task without enough time ends at once, instead of waiting for an attempt that is not made.
//!
//! Not here: what an answer means (`classify`), and whether the dependency may be called right now (the guards).

use std::time::Duration;

use crate::backoff::{self, Backoff};
use crate::classify::{Cause, DNS_ATTEMPTS, Verdict};
use crate::jitter::Jitter;
use crate::policy::Policy;
use crate::task::{Reason, Status};
use crate::time::Timestamp;

/// The state of a task's run when an attempt has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunState {
    /// The attempt that just ended, from 1 in every run.
    pub attempt: u32,
    /// The most attempts of one run.
    pub max_attempts: u32,
    /// No send begins after this.
    pub deadline_at: Timestamp,
    /// The wait that was drawn before this attempt, if there was one.
    pub previous_backoff: Option<Duration>,
    /// The expected duration of a call of this dependency.
    pub estimate: Duration,
    /// Attempts of this run that failed by DNS, before the one that just ended.
    pub dns_failures: u32,
}

/// What happens to the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The task ends.
    End(Status, Option<Reason>),
    /// The task is retried.
    Retry {
        /// When the next attempt is due.
        at: Timestamp,
        /// The wait until then in whole milliseconds (rounded up): as drawn, doubled, or as the dependency asked. It is
        /// also the previous wait for the next draw of decorrelated jitter: see [`OVERLOAD_FACTOR`].
        backoff: Duration,
        /// Attempts of this run that failed by DNS, the one that just ended included.
        dns_failures: u32,
    },
    /// The task waits and is tried again. Nothing was sent, and no attempt counts.
    PutOff {
        /// The end of the wait.
        until: Timestamp,
    },
}

/// The factor on the drawn wait when the dependency answers 429 without a Retry-After.
///
/// It applies to the draw, after jitter and cap, so the wait may be up to twice the policy's longest. Decorrelated
/// jitter uses the doubled wait as its previous one, as it does with a Retry-After. The wait stays bounded, because
/// every draw is capped before it is doubled.
pub const OVERLOAD_FACTOR: u32 = 2;
/// The share of a pause by which it is drawn longer or shorter, so that tasks that were put off together do not return
/// together.
pub const PAUSE_SPREAD: f64 = 0.2;
/// Near the deadline a pause becomes shorter, down to this or to a tenth of itself, whichever is less.
pub const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

/// Whether an attempt may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendCheck {
    /// The attempt may start.
    SendNow {
        /// How long it may take: the attempt timeout, or what is left until the deadline if that is less. Never zero.
        timeout: Duration,
    },
    /// The deadline has passed, or would pass before the expected end of the call.
    TooLate,
}

/// What happens after an attempt that ended with `verdict`; a retry's wait is drawn with `unit` in [0, 1).
pub fn after_attempt(policy: &Policy, run: &RunState, verdict: &Verdict, now: Timestamp, unit: f64) -> Decision {
    match *verdict {
        Verdict::Success => Decision::End(Status::Succeeded, None),
        Verdict::Never => Decision::End(Status::Failed, Some(Reason::NotRetryable)),
        Verdict::BodyLost => Decision::End(Status::Failed, Some(Reason::BodyLost)),
        Verdict::NotSent { pause } => put_off(policy, run, pause, now, unit),
        Verdict::Retry { .. } | Verdict::Overloaded { .. } if run.attempt >= run.max_attempts => {
            exhausted(Reason::Attempts)
        }
        Verdict::Retry { after, cause } => {
            let dns_failures = run.dns_failures.saturating_add(u32::from(cause == Cause::Dns));
            if cause == Cause::Dns && dns_failures >= DNS_ATTEMPTS {
                return exhausted(Reason::DnsAttempts);
            }
            let wait = Wait { factor: 1, asked: after };
            retry(policy, &RunState { dns_failures, ..*run }, wait, now, unit)
        }
        Verdict::Overloaded { after } => {
            let factor = if after.is_none() { OVERLOAD_FACTOR } else { 1 };
            retry(policy, run, Wait { factor, asked: after }, now, unit)
        }
    }
}

/// What happens after an attempt that a crash interrupted. It counts like a retryable failure. If it was the last one,
/// it is unknown whether the task was delivered, and the reason says so.
pub fn after_lost_lease(policy: &Policy, run: &RunState, now: Timestamp, unit: f64) -> Decision {
    if run.attempt >= run.max_attempts {
        return exhausted(Reason::OutcomeUnknown);
    }
    retry(policy, run, Wait { factor: 1, asked: None }, now, unit)
}

/// Whether an attempt that begins at `now` can be expected to end by the deadline.
///
/// A dependency is given no longer than the attempt timeout, so an estimate beyond that counts as the timeout.
pub fn before_send(deadline_at: Timestamp, estimate: Duration, attempt_timeout: Duration, now: Timestamp) -> SendCheck {
    let expected_end = now.after(estimate.min(attempt_timeout));
    if now >= deadline_at || expected_end > deadline_at {
        return SendCheck::TooLate;
    }
    SendCheck::SendNow { timeout: attempt_timeout.min(deadline_at.since(now)) }
}

/// The parts of a verdict that affect the wait before a retry.
struct Wait {
    /// The factor on the drawn wait.
    factor: u32,
    /// The wait that the dependency asked for.
    asked: Option<Duration>,
}

fn retry(policy: &Policy, run: &RunState, wait: Wait, now: Timestamp, unit: f64) -> Decision {
    let fits = |at| before_send(run.deadline_at, run.estimate, policy.attempt_timeout, at) != SendCheck::TooLate;
    let asked = wait.asked.unwrap_or(Duration::ZERO);
    if policy.retry_after_max.is_some_and(|longest| asked > longest) {
        return exhausted(Reason::RetryAfter);
    }
    let drawn = backoff::delay(policy, run.attempt, run.previous_backoff, unit);
    let computed = drawn.saturating_mul(wait.factor);
    if !fits(now.after(computed)) {
        return exhausted(Reason::Deadline);
    }
    let at = now.after(computed.max(asked));
    if !fits(at) {
        return exhausted(Reason::RetryAfter);
    }
    Decision::Retry { at, backoff: at.since(now), dns_failures: run.dns_failures }
}

/// The pause, or half of the time until the last moment for a send if that is less: a task with little time must not
/// spend it waiting.
fn put_off(policy: &Policy, run: &RunState, pause: Duration, now: Timestamp, unit: f64) -> Decision {
    let shortest = SHORTEST_PAUSE.min(pause / 10);
    let last_send = run.deadline_at.before(run.estimate.min(policy.attempt_timeout));
    let delay = (last_send.since(now) / 2).clamp(shortest, pause);
    let jitter = Jitter::Proportional { ratio: PAUSE_SPREAD };
    let until = now.after(jitter.draw(&Backoff::Fixed { delay }, 1, None, unit));
    match before_send(run.deadline_at, run.estimate, policy.attempt_timeout, until) {
        SendCheck::SendNow { .. } => Decision::PutOff { until },
        SendCheck::TooLate => exhausted(Reason::Deadline),
    }
}

fn exhausted(reason: Reason) -> Decision {
    Decision::End(Status::Exhausted, Some(reason))
}

#[cfg(test)]
mod tests;
