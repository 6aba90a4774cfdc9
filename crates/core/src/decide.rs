//! What happens to a task now: one pure function of the policy, where the task stands, the verdict and a random draw.
//!
//! There is one rule for time, [`before_send`]: a retry is scheduled only if that rule would let it go at the moment when
//! it is due. So a task whose time is up ends at once, instead of waiting for a send that will be turned away.
//!
//! Not here: what an answer means (`classify`), and whether the dependency may be called right now (the guards).

use std::time::Duration;

use crate::backoff::{self, Backoff};
use crate::classify::Verdict;
use crate::jitter::Jitter;
use crate::planted::{self, Bug};
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
        /// The wait until then, as drawn or as the dependency asked, in whole milliseconds (rounded up).
        backoff: Duration,
    },
    /// It waits and is tried again; nothing was sent, and no attempt counts.
    PutOff {
        /// Until when.
        until: Timestamp,
    },
}

/// How long a task waits whose body cannot be read, give or take [`PAUSE_SPREAD`] of it.
pub const PAUSE: Duration = Duration::from_secs(15);
/// What such a wait comes down to when the deadline is near.
pub const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// The part of a pause by which it is drawn longer or shorter: what failed together must not come back together.
pub const PAUSE_SPREAD: f64 = 0.2;

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
        Verdict::Retry { after, max_attempts } => {
            let most = max_attempts.map_or(standing.max_attempts, |cap| cap.min(standing.max_attempts));
            let most = if planted::is(Bug::OneAttemptTooMany) { most + 1 } else { most };
            let most = if planted::is(Bug::OneAttemptTooFew) { most.max(2) - 1 } else { most };
            if standing.attempt >= most {
                return exhausted(Reason::Attempts);
            }
            retry(policy, standing, after, now, unit)
        }
        Verdict::NotSent => put_off(policy, standing, now, unit),
    }
}

/// What happens after an attempt that a crash cut off: it counts like a failure that may be retried, but if it was the
/// last one, nobody knows whether the task was delivered, and the reason says so.
pub fn after_lost_lease(policy: &Policy, standing: &Standing, now: Timestamp, unit: f64) -> Decision {
    if standing.attempt >= standing.max_attempts && !planted::is(Bug::RetryAfterTheLastUnknown) {
        return exhausted(Reason::OutcomeUnknown);
    }
    retry(policy, standing, None, now, unit)
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

fn retry(policy: &Policy, standing: &Standing, after: Option<Duration>, now: Timestamp, unit: f64) -> Decision {
    let fits = |at| before_send(standing.deadline_at, standing.estimate, policy.attempt_timeout, at) != Fit::TooLate;
    let asked = after.filter(|_| !planted::is(Bug::IgnoreRetryAfter)).unwrap_or(Duration::ZERO);
    if policy.retry_after_max.is_some_and(|longest| asked > longest) {
        return exhausted(Reason::RetryAfter);
    }
    let mut drawn = backoff::delay(policy, standing.attempt, standing.previous_backoff, unit);
    if planted::is(Bug::NoBackoff) {
        drawn = Duration::ZERO;
    }
    if !fits(now.after(drawn)) {
        return exhausted(Reason::Deadline);
    }
    let at = now.after(drawn.max(asked));
    if !fits(at) && !planted::is(Bug::WaitBeyondDeadline) {
        return exhausted(Reason::RetryAfter);
    }
    Decision::Retry { at, backoff: at.since(now) }
}

/// Half of what is left, within bounds: a task with little time must not sleep through it.
fn put_off(policy: &Policy, standing: &Standing, now: Timestamp, unit: f64) -> Decision {
    let delay = (standing.deadline_at.since(now) / 2).clamp(SHORTEST_PAUSE, PAUSE);
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
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);
    const RETRY: Verdict = Verdict::Retry { after: None, max_attempts: None };

    /// Waits exactly 10 s before each retry.
    fn policy() -> Policy {
        Policy {
            backoff: Backoff::Fixed { delay: secs(10) },
            jitter: Jitter::None,
            attempt_timeout: secs(30),
            ..Policy::default()
        }
    }

    /// After the first of 6 attempts, with an hour left and calls that take a second.
    fn standing() -> Standing {
        Standing {
            attempt: 1,
            max_attempts: 6,
            deadline_at: NOW.after(secs(3_600)),
            previous_backoff: None,
            estimate: secs(1),
        }
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn asking(seconds: u64) -> Verdict {
        Verdict::Retry { after: Some(secs(seconds)), max_attempts: None }
    }

    fn retry_in(wait: Duration) -> Decision {
        Decision::Retry { at: NOW.after(wait), backoff: wait }
    }

    fn decide(standing: &Standing, verdict: Verdict) -> Decision {
        after_attempt(&policy(), standing, &verdict, NOW, 0.5)
    }

    #[test]
    fn a_success_and_a_failure_that_is_never_retried_end_the_task_whatever_is_left() {
        for attempt in [1, 6] {
            for deadline_at in [NOW.before(secs(1)), NOW.after(secs(3_600))] {
                let standing = Standing { attempt, deadline_at, ..standing() };
                assert_eq!(decide(&standing, Verdict::Success), Decision::End(Status::Succeeded, None));
                assert_eq!(
                    decide(&standing, Verdict::Never),
                    Decision::End(Status::Failed, Some(Reason::NotRetryable))
                );
                assert_eq!(decide(&standing, Verdict::BodyLost), Decision::End(Status::Failed, Some(Reason::BodyLost)));
            }
        }
    }

    #[test]
    fn attempts_end_at_the_tighter_of_the_tasks_limit_and_the_failures() {
        // attempt, the task's limit, the failure's limit, whether it is retried
        let cases = [
            (1, 1, None, false),
            (1, 2, None, true),
            (5, 6, None, true),
            (6, 6, None, false),
            (7, 6, None, false),
            (1, 6, Some(2), true),
            (2, 6, Some(2), false),
            (4, 6, Some(2), false),
            (1, 1, Some(2), false),
        ];
        for (attempt, max_attempts, cap, retried) in cases {
            let standing = Standing { attempt, max_attempts, ..standing() };
            let verdict = Verdict::Retry { after: None, max_attempts: cap };
            let expected = if retried { retry_in(secs(10)) } else { exhausted(Reason::Attempts) };
            assert_eq!(decide(&standing, verdict), expected, "attempt {attempt} of {max_attempts}, {cap:?}");
        }
    }

    #[test]
    fn the_wait_is_the_longer_of_the_backoff_and_the_retry_after() {
        for (asked, expected) in [(0, 10), (9, 10), (10, 10), (11, 11), (3_000, 3_000)] {
            assert_eq!(decide(&standing(), asking(asked)), retry_in(secs(expected)), "asked for {asked} s");
        }
        assert_eq!(decide(&standing(), RETRY), retry_in(secs(10)));
    }

    #[test]
    fn the_wait_is_drawn_for_the_retry_that_follows_the_attempt() {
        let policy = Policy::default();
        for (attempt, unit, expected) in [(1, 0.5, 500), (2, 0.5, 1_000), (5, 0.25, 4_000), (1, 0.0, 0)] {
            let standing = Standing { attempt, ..standing() };
            let decision = after_attempt(&policy, &standing, &RETRY, NOW, unit);
            assert_eq!(decision, retry_in(Duration::from_millis(expected)), "attempt {attempt}, unit {unit}");
        }
        let decorrelated = Policy { jitter: Jitter::Decorrelated, ..policy };
        let standing = Standing { previous_backoff: Some(secs(4)), ..standing() };
        let decision = after_attempt(&decorrelated, &standing, &RETRY, NOW, 0.5);
        assert_eq!(decision, retry_in(Duration::from_millis(6_500)));
    }

    #[test]
    fn the_backoff_is_in_whole_milliseconds_and_is_what_the_task_waits() {
        let policy = Policy { backoff: Backoff::Fixed { delay: Duration::from_micros(1_001) }, ..policy() };
        let decision = after_attempt(&policy, &standing(), &RETRY, NOW, 0.5);
        assert_eq!(decision, retry_in(Duration::from_millis(2)));
    }

    #[test]
    fn a_retry_after_beyond_the_policys_patience_ends_the_task() {
        let policy = Policy { retry_after_max: Some(secs(60)), ..policy() };
        for (asked, expected) in
            [(60, retry_in(secs(60))), (61, exhausted(Reason::RetryAfter)), (u64::MAX, exhausted(Reason::RetryAfter))]
        {
            assert_eq!(after_attempt(&policy, &standing(), &asking(asked), NOW, 0.5), expected, "{asked}");
        }
        // It bounds what the dependency asks for, not the policy's own backoff.
        let strict = Policy { retry_after_max: Some(Duration::ZERO), ..policy };
        assert_eq!(after_attempt(&strict, &standing(), &RETRY, NOW, 0.5), retry_in(secs(10)));
        assert_eq!(after_attempt(&strict, &standing(), &asking(0), NOW, 0.5), retry_in(secs(10)));
        assert_eq!(after_attempt(&strict, &standing(), &asking(1), NOW, 0.5), exhausted(Reason::RetryAfter));
    }

    #[test]
    fn a_retry_must_be_expected_to_end_by_the_deadline() {
        let deadline = exhausted(Reason::Deadline);
        let retry_after = exhausted(Reason::RetryAfter);
        // ms to the deadline, estimate in s, asked for, decision
        let cases = [
            (11_000, 1, None, retry_in(secs(10))),
            (10_999, 1, None, deadline),
            (10_001, 0, None, retry_in(secs(10))),
            // A send at the deadline itself would have no time at all.
            (10_000, 0, None, deadline),
            (0, 0, None, deadline),
            // An estimate beyond the attempt timeout counts as the timeout, 30 s.
            (40_000, 500, None, retry_in(secs(10))),
            (39_999, 500, None, deadline),
            // The Retry-After is the longer one, and what does not fit.
            (21_000, 1, Some(20), retry_in(secs(20))),
            (20_999, 1, Some(20), retry_after),
            (20_999, 1, Some(u64::MAX), retry_after),
            // The backoff would not have fitted either.
            (10_999, 1, Some(20), deadline),
            // The Retry-After is the shorter one.
            (10_999, 1, Some(5), deadline),
        ];
        for (left, estimate, asked, expected) in cases {
            let deadline_at = NOW.after(Duration::from_millis(left));
            let standing = Standing { deadline_at, estimate: secs(estimate), ..standing() };
            let verdict = asked.map_or(RETRY, asking);
            assert_eq!(decide(&standing, verdict), expected, "{left} ms left, estimate {estimate} s, asked {asked:?}");
        }
    }

    #[test]
    fn used_up_attempts_are_the_reason_even_when_time_is_up_too() {
        let standing = Standing { attempt: 6, deadline_at: NOW, ..standing() };
        assert_eq!(decide(&standing, asking(u64::MAX)), exhausted(Reason::Attempts));
    }

    #[test]
    fn an_attempt_that_a_crash_cut_off_counts_and_leaves_its_outcome_unknown() {
        let after = |standing| after_lost_lease(&policy(), &standing, NOW, 0.5);
        assert_eq!(after(standing()), retry_in(secs(10)));
        assert_eq!(after(Standing { attempt: 5, ..standing() }), retry_in(secs(10)));
        assert_eq!(after(Standing { attempt: 6, ..standing() }), exhausted(Reason::OutcomeUnknown));
        assert_eq!(after(Standing { attempt: 1, max_attempts: 1, ..standing() }), exhausted(Reason::OutcomeUnknown));
        assert_eq!(after(Standing { deadline_at: NOW, ..standing() }), exhausted(Reason::Deadline));
    }

    #[test]
    fn what_was_not_sent_waits_a_pause_and_counts_for_nothing() {
        let put_off = |millis| Decision::PutOff { until: NOW.after(Duration::from_millis(millis)) };
        // ms to the deadline, estimate in s, unit, decision
        let cases = [
            (3_600_000, 1, 0.0, put_off(12_000)),
            (3_600_000, 1, 0.5, put_off(15_000)),
            (3_600_000, 1, 0.75, put_off(16_500)),
            // Half of what is left, down to a second.
            (20_000, 1, 0.5, put_off(10_000)),
            (4_000, 1, 0.5, put_off(2_000)),
            (2_001, 1, 0.5, put_off(1_001)),
            (1_600, 0, 0.5, put_off(1_000)),
            // No send would come to its end.
            (20_000, 11, 0.5, exhausted(Reason::Deadline)),
            (1_000, 0, 0.5, exhausted(Reason::Deadline)),
            (0, 0, 0.5, exhausted(Reason::Deadline)),
        ];
        for (left, estimate, unit, expected) in cases {
            // However many attempts there were: this was none.
            for attempt in [1, 6, 7] {
                let deadline_at = NOW.after(Duration::from_millis(left));
                let standing = Standing { attempt, deadline_at, estimate: secs(estimate), ..standing() };
                let decision = after_attempt(&policy(), &standing, &Verdict::NotSent, NOW, unit);
                assert_eq!(decision, expected, "{left} ms left, estimate {estimate} s, unit {unit}");
            }
        }
        let broken = after_attempt(&policy(), &standing(), &Verdict::NotSent, NOW, f64::NAN);
        assert_eq!(broken, put_off(18_000), "a broken source of randomness waits longest");
    }

    #[test]
    fn a_send_gets_the_attempt_timeout_or_what_is_left() {
        let send = |seconds| Fit::SendNow { timeout: secs(seconds) };
        // s to the deadline, estimate, attempt timeout
        let cases = [
            (100, 0, 30, send(30)),
            (30, 0, 30, send(30)),
            (29, 0, 30, send(29)),
            (5, 5, 30, send(5)),
            (5, 6, 30, Fit::TooLate),
            // The estimate is held to the timeout.
            (30, 600, 30, send(30)),
            (29, 600, 30, Fit::TooLate),
            (0, 0, 30, Fit::TooLate),
        ];
        for (left, estimate, timeout, expected) in cases {
            let fit = before_send(NOW.after(secs(left)), secs(estimate), secs(timeout), NOW);
            assert_eq!(fit, expected, "{left} s left, estimate {estimate} s, timeout {timeout} s");
        }
        assert_eq!(before_send(NOW, Duration::ZERO, secs(30), NOW.after(secs(1))), Fit::TooLate);
        let at_the_last_millisecond = before_send(NOW.after(Duration::from_millis(1)), Duration::ZERO, secs(30), NOW);
        assert_eq!(at_the_last_millisecond, Fit::SendNow { timeout: Duration::from_millis(1) });
    }

    #[test]
    fn a_fresh_task_is_always_sent_however_slow_its_dependency() {
        let policy = Policy::default();
        let deadline_at = NOW.after(policy.total_budget);
        let fit = before_send(deadline_at, Duration::MAX, policy.attempt_timeout, NOW);
        assert_eq!(fit, Fit::SendNow { timeout: policy.attempt_timeout });
    }

    /// Every retry that is decided on waits long enough, is within the limits and will be let through when it is due.
    #[test]
    fn what_is_retried_can_be_sent_when_it_is_due() {
        let policy = Policy::default();
        let mut retries = 0;
        for attempt in 1..=7 {
            for left in [0, 1, 400, 999, 1_000, 1_001, 5_000, 31_000, 86_400_000] {
                for asked in [None, Some(0), Some(1), Some(30), Some(86_400)] {
                    for unit in [0.0, 0.1, 0.5, 0.999, f64::NAN] {
                        for estimate in [Duration::ZERO, Duration::from_micros(700), secs(1), secs(100)] {
                            let deadline_at = NOW.after(Duration::from_millis(left));
                            let standing = Standing { attempt, deadline_at, estimate, ..standing() };
                            let verdict = asked.map_or(RETRY, asking);
                            let decision = after_attempt(&policy, &standing, &verdict, NOW, unit);
                            let Decision::Retry { at, backoff } = decision else { continue };
                            retries += 1;
                            assert!(attempt < 6, "{standing:?}");
                            assert_eq!(at, NOW.after(backoff), "{standing:?}");
                            assert!(backoff >= secs(asked.unwrap_or(0)), "{standing:?}");
                            let fit = before_send(deadline_at, estimate, policy.attempt_timeout, at);
                            assert_ne!(fit, Fit::TooLate, "{standing:?}");
                        }
                    }
                }
            }
        }
        assert!(retries > 1_000, "{retries}");
    }
}
