//! What happens to a task now: one pure function of the policy, where the task stands, the verdict and a random draw.
//!
//! There is one rule for time, [`before_send`]: a retry is scheduled only if that rule would let it go at the moment when
//! it is due. So a task whose time is up ends at once, instead of waiting for a send that will be turned away.
//!
//! Not here: what an answer means (`classify`), and whether the dependency may be called right now (the guards).

use std::time::Duration;

use crate::backoff::{self, Backoff};
use crate::classify::{Cause, DNS_ATTEMPTS, Verdict};
use crate::jitter::Jitter;
use crate::policy::Policy;
use crate::task::{Reason, Status};
use crate::time::Timestamp;

/// Where a task stands when an attempt has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// The attempt that just ended, from 1 in every run.
    pub attempt: u32,
    /// The task's own limit, for one run.
    pub max_attempts: u32,
    /// No send begins after this.
    pub deadline_at: Timestamp,
    /// The wait that was drawn before this attempt, if there was one.
    pub previous_backoff: Option<Duration>,
    /// What a call of this dependency has been taking.
    pub estimate: Duration,
    /// Attempts of this run that failed by DNS, before the one that just ended.
    pub dns_failures: u32,
}

/// What happens to the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It ends.
    End(Status, Option<Reason>),
    /// It is tried again.
    Retry {
        /// When.
        at: Timestamp,
        /// The wait until then, as drawn, doubled or as the dependency asked, in whole milliseconds (rounded up). It is
        /// also the previous wait that decorrelated jitter builds on at the next draw: see [`OVERLOAD_FACTOR`].
        backoff: Duration,
        /// Attempts of this run that failed by DNS, the one that just ended included.
        dns_failures: u32,
    },
    /// It waits and is tried again; nothing was sent, and no attempt counts.
    PutOff {
        /// Until when.
        until: Timestamp,
    },
}

/// What the drawn wait is multiplied with when the dependency asks for fewer requests and does not say when to come back.
///
/// The factor is put on the draw, after jitter and cap, so the wait may be up to twice the policy's longest. The doubled
/// wait is what decorrelated jitter takes for its previous one, as it does with a Retry-After: it grows from the time that
/// the dependency was really left alone. That cannot run away, because every draw is capped again before it is doubled.
pub const OVERLOAD_FACTOR: u32 = 2;
/// The part of a pause by which it is drawn longer or shorter: tasks that were put off together must not return together.
pub const PAUSE_SPREAD: f64 = 0.2;
/// Near the deadline a pause becomes shorter, down to this or to a tenth of itself, whichever is less.
pub const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

/// Whether a send still makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// It does.
    SendNow {
        /// How long it may take: the attempt timeout, or what is left until the deadline if that is less. Never zero.
        timeout: Duration,
    },
    /// The deadline has passed, or will have before the call can be expected to end.
    TooLate,
}

/// What happens after an attempt that ended with `verdict`; a retry's wait is drawn with `unit` in [0, 1).
pub fn after_attempt(policy: &Policy, standing: &Standing, verdict: &Verdict, now: Timestamp, unit: f64) -> Decision {
    match *verdict {
        Verdict::Success => Decision::End(Status::Succeeded, None),
        Verdict::Never => Decision::End(Status::Failed, Some(Reason::NotRetryable)),
        Verdict::BodyLost => Decision::End(Status::Failed, Some(Reason::BodyLost)),
        Verdict::NotSent { pause } => put_off(policy, standing, pause, now, unit),
        Verdict::Retry { .. } | Verdict::Overloaded { .. } if standing.attempt >= standing.max_attempts => {
            exhausted(Reason::Attempts)
        }
        Verdict::Retry { after, cause } => {
            let dns_failures = standing.dns_failures.saturating_add(u32::from(cause == Cause::Dns));
            if cause == Cause::Dns && dns_failures >= DNS_ATTEMPTS {
                return exhausted(Reason::DnsAttempts);
            }
            let wait = Wait { factor: 1, asked: after };
            retry(policy, &Standing { dns_failures, ..*standing }, wait, now, unit)
        }
        Verdict::Overloaded { after } => {
            let factor = if after.is_none() { OVERLOAD_FACTOR } else { 1 };
            retry(policy, standing, Wait { factor, asked: after }, now, unit)
        }
    }
}

/// What happens after an attempt that a crash cut off: it counts like a failure that may be retried, but if it was the
/// last one, it is unknown whether the task was delivered, and the reason says so.
pub fn after_lost_lease(policy: &Policy, standing: &Standing, now: Timestamp, unit: f64) -> Decision {
    if standing.attempt >= standing.max_attempts {
        return exhausted(Reason::OutcomeUnknown);
    }
    retry(policy, standing, Wait { factor: 1, asked: None }, now, unit)
}

/// Whether an attempt that begins at `now` can be expected to end by the deadline.
///
/// A dependency is given no longer than the attempt timeout, so an estimate beyond that counts as the timeout.
pub fn before_send(deadline_at: Timestamp, estimate: Duration, attempt_timeout: Duration, now: Timestamp) -> Fit {
    let expected_end = now.after(estimate.min(attempt_timeout));
    if now >= deadline_at || expected_end > deadline_at {
        return Fit::TooLate;
    }
    Fit::SendNow { timeout: attempt_timeout.min(deadline_at.since(now)) }
}

/// What a verdict says about the wait before a retry.
struct Wait {
    /// What the drawn wait is multiplied with.
    factor: u32,
    /// What the dependency asked for.
    asked: Option<Duration>,
}

fn retry(policy: &Policy, standing: &Standing, wait: Wait, now: Timestamp, unit: f64) -> Decision {
    let fits = |at| before_send(standing.deadline_at, standing.estimate, policy.attempt_timeout, at) != Fit::TooLate;
    let asked = wait.asked.unwrap_or(Duration::ZERO);
    if policy.retry_after_max.is_some_and(|longest| asked > longest) {
        return exhausted(Reason::RetryAfter);
    }
    let drawn = backoff::delay(policy, standing.attempt, standing.previous_backoff, unit);
    let computed = drawn.saturating_mul(wait.factor);
    if !fits(now.after(computed)) {
        return exhausted(Reason::Deadline);
    }
    let at = now.after(computed.max(asked));
    if !fits(at) {
        return exhausted(Reason::RetryAfter);
    }
    Decision::Retry { at, backoff: at.since(now), dns_failures: standing.dns_failures }
}

/// The pause, or half of the time until the last moment for a send if that is less: a task with little time must not sleep
/// through it.
fn put_off(policy: &Policy, standing: &Standing, pause: Duration, now: Timestamp, unit: f64) -> Decision {
    let shortest = SHORTEST_PAUSE.min(pause / 10);
    let last_send = standing.deadline_at.before(standing.estimate.min(policy.attempt_timeout));
    let delay = (last_send.since(now) / 2).clamp(shortest, pause);
    let jitter = Jitter::Proportional { ratio: PAUSE_SPREAD };
    let until = now.after(jitter.draw(&Backoff::Fixed { delay }, 1, None, unit));
    match before_send(standing.deadline_at, standing.estimate, policy.attempt_timeout, until) {
        Fit::SendNow { .. } => Decision::PutOff { until },
        Fit::TooLate => exhausted(Reason::Deadline),
    }
}

fn exhausted(reason: Reason) -> Decision {
    Decision::End(Status::Exhausted, Some(reason))
}

#[cfg(test)]
mod tests;
