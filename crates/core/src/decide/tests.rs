use super::*;
use crate::classify::{BODY_PAUSE, LOCAL_PAUSE};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const RETRY: Verdict = Verdict::Retry { after: None, cause: Cause::Failure };
const DNS: Verdict = Verdict::Retry { after: None, cause: Cause::Dns };
const OVERLOADED: Verdict = Verdict::Overloaded { after: None };

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
fn run() -> RunState {
    RunState {
        attempt: 1,
        max_attempts: 6,
        deadline_at: NOW.after(secs(3_600)),
        previous_backoff: None,
        estimate: secs(1),
        dns_failures: 0,
    }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn asking(seconds: u64) -> Verdict {
    Verdict::Retry { after: Some(secs(seconds)), cause: Cause::Failure }
}

fn retry_in(wait: Duration) -> Decision {
    Decision::Retry { at: NOW.after(wait), backoff: wait, dns_failures: 0 }
}

fn decide(run: &RunState, verdict: Verdict) -> Decision {
    after_attempt(&policy(), run, &verdict, NOW, 0.5)
}

#[test]
fn a_success_and_a_failure_that_is_never_retried_end_the_task_whatever_is_left() {
    for attempt in [1, 6] {
        for deadline_at in [NOW.before(secs(1)), NOW.after(secs(3_600))] {
            let run = RunState { attempt, deadline_at, ..run() };
            assert_eq!(decide(&run, Verdict::Success), Decision::End(Status::Succeeded, None));
            assert_eq!(decide(&run, Verdict::Never), Decision::End(Status::Failed, Some(Reason::NotRetryable)));
            assert_eq!(decide(&run, Verdict::BodyLost), Decision::End(Status::Failed, Some(Reason::BodyLost)));
        }
    }
}

#[test]
fn attempts_end_at_the_tasks_limit_whatever_the_failure() {
    for (attempt, max_attempts, is_retried) in
        [(1, 1, false), (1, 2, true), (2, 2, false), (5, 6, true), (6, 6, false), (7, 6, false)]
    {
        let run = RunState { attempt, max_attempts, ..run() };
        for verdict in [RETRY, DNS, OVERLOADED] {
            let decision = decide(&run, verdict);
            let case = format!("attempt {attempt} of {max_attempts}, {verdict:?}");
            match is_retried {
                true => assert!(matches!(decision, Decision::Retry { .. }), "{case}: {decision:?}"),
                false => assert_eq!(decision, exhausted(Reason::Attempts), "{case}"),
            }
        }
    }
}

#[test]
fn two_attempts_of_a_run_may_fail_by_dns_whatever_came_before_and_between() {
    let retried = |dns_failures| Decision::Retry { at: NOW.after(secs(10)), backoff: secs(10), dns_failures };
    let ended = exhausted(Reason::DnsAttempts);
    // What each attempt ended with, the most attempts, the decision after the last of them.
    let cases: [(&[Verdict], u32, Decision); 11] = [
        (&[DNS], 6, retried(1)),
        (&[DNS, DNS], 6, ended),
        (&[RETRY, DNS], 6, retried(1)),
        (&[RETRY, RETRY, RETRY, DNS], 6, retried(1)),
        (&[RETRY, DNS, DNS], 6, ended),
        (&[DNS, RETRY], 6, retried(1)),
        (&[DNS, RETRY, DNS], 6, ended),
        (&[DNS, asking(10), RETRY, RETRY, DNS], 6, ended),
        (&[DNS, Verdict::Success], 6, Decision::End(Status::Succeeded, None)),
        // The task's own limit is the reason where both are reached.
        (&[DNS], 1, exhausted(Reason::Attempts)),
        (&[DNS, DNS], 2, exhausted(Reason::Attempts)),
    ];
    for (verdicts, max_attempts, expected) in cases {
        let (mut decision, mut dns_failures) = (retried(0), 0);
        for (attempt, verdict) in (1..).zip(verdicts) {
            decision = decide(&RunState { attempt, max_attempts, dns_failures, ..run() }, *verdict);
            if let Decision::Retry { dns_failures: so_far, .. } = decision {
                dns_failures = so_far;
            }
        }
        assert_eq!(decision, expected, "{verdicts:?}, at most {max_attempts}");
    }
}

#[test]
fn every_retry_keeps_the_count_of_dns_failures() {
    let run = RunState { dns_failures: 1, ..run() };
    let kept = |wait| Decision::Retry { at: NOW.after(wait), backoff: wait, dns_failures: 1 };
    assert_eq!(decide(&run, RETRY), kept(secs(10)));
    assert_eq!(decide(&run, OVERLOADED), kept(secs(20)));
    assert_eq!(after_lost_lease(&policy(), &run, NOW, 0.5), kept(secs(10)));
    // Only a DNS failure ends a task by this limit, and the count does not overflow.
    let full = RunState { dns_failures: u32::MAX, ..run };
    let retried = Decision::Retry { at: NOW.after(secs(10)), backoff: secs(10), dns_failures: u32::MAX };
    assert_eq!(decide(&full, DNS), exhausted(Reason::DnsAttempts));
    assert_eq!(decide(&full, RETRY), retried);
}

#[test]
fn a_429_that_names_no_wait_waits_twice_what_was_drawn() {
    let default = Policy::default();
    let proportional =
        Policy { backoff: Backoff::Fixed { delay: secs(10) }, jitter: Jitter::Proportional { ratio: 0.2 }, ..policy() };
    let endless = Policy { backoff: Backoff::Fixed { delay: Duration::MAX }, ..policy() };
    // policy, attempt, unit, what a failure waits in ms, what a 429 waits in ms
    let cases = [
        (&policy(), 1, 0.5, 10_000, 20_000),
        (&default, 1, 0.5, 500, 1_000),
        (&default, 2, 0.5, 1_000, 2_000),
        (&default, 5, 0.25, 4_000, 8_000),
        (&default, 1, 0.0, 0, 0),
        // Doubled after the cap of 30 s.
        (&default, 7, 0.5, 15_000, 30_000),
        (&default, 7, 0.75, 22_500, 45_000),
        (&proportional, 1, 0.0, 8_000, 16_000),
        (&proportional, 1, 0.75, 11_000, 22_000),
    ];
    for (policy, attempt, unit, failure, overloaded) in cases {
        let run = RunState { attempt, max_attempts: 20, ..run() };
        let wait = |verdict| after_attempt(policy, &run, &verdict, NOW, unit);
        let case = format!("attempt {attempt}, unit {unit}");
        assert_eq!(wait(RETRY), retry_in(Duration::from_millis(failure)), "{case}");
        assert_eq!(wait(OVERLOADED), retry_in(Duration::from_millis(overloaded)), "{case}");
    }
    assert_eq!(after_attempt(&endless, &run(), &OVERLOADED, NOW, 0.5), exhausted(Reason::Deadline));
}

#[test]
fn a_429_that_names_a_wait_waits_for_the_longer_one_and_doubles_nothing() {
    for (asked, expected) in [(0, 10), (9, 10), (10, 10), (11, 11), (15, 15), (3_000, 3_000)] {
        let verdict = Verdict::Overloaded { after: Some(secs(asked)) };
        assert_eq!(decide(&run(), verdict), retry_in(secs(expected)), "asked for {asked} s");
    }
    let verdict = Verdict::Overloaded { after: Some(secs(61)) };
    let impatient = Policy { retry_after_max: Some(secs(60)), ..policy() };
    assert_eq!(after_attempt(&impatient, &run(), &verdict, NOW, 0.5), exhausted(Reason::RetryAfter));
}

#[test]
fn the_doubled_wait_must_fit_before_the_deadline() {
    for (left, expected) in [(21_000, retry_in(secs(20))), (20_999, exhausted(Reason::Deadline))] {
        let run = RunState { deadline_at: NOW.after(Duration::from_millis(left)), ..run() };
        assert_eq!(decide(&run, OVERLOADED), expected, "{left} ms left");
        assert_eq!(decide(&run, RETRY), retry_in(secs(10)), "{left} ms left");
    }
}

#[test]
fn decorrelated_jitter_grows_from_the_doubled_wait_and_never_beyond_twice_the_longest() {
    let policy = Policy { jitter: Jitter::Decorrelated, ..Policy::default() };
    let mut previous_backoff = None;
    // The draw is min(30 s, uniform(1 s, 3 × previous)); a 429 doubles it.
    for (attempt, verdict, expected) in [
        (1, RETRY, 2_000),
        (2, OVERLOADED, 7_000),
        (3, OVERLOADED, 22_000),
        (4, OVERLOADED, 60_000),
        (5, OVERLOADED, 60_000),
        (6, RETRY, 30_000),
    ] {
        let run = RunState { attempt, max_attempts: 20, previous_backoff, ..run() };
        let decision = after_attempt(&policy, &run, &verdict, NOW, 0.5);
        assert_eq!(decision, retry_in(Duration::from_millis(expected)), "attempt {attempt}");
        let Decision::Retry { backoff, .. } = decision else { unreachable!("asserted above") };
        previous_backoff = Some(backoff);
    }
}

#[test]
fn the_wait_is_the_longer_of_the_backoff_and_the_retry_after() {
    for (asked, expected) in [(0, 10), (9, 10), (10, 10), (11, 11), (3_000, 3_000)] {
        assert_eq!(decide(&run(), asking(asked)), retry_in(secs(expected)), "asked for {asked} s");
    }
    assert_eq!(decide(&run(), RETRY), retry_in(secs(10)));
}

#[test]
fn the_wait_is_drawn_for_the_retry_that_follows_the_attempt() {
    let policy = Policy::default();
    for (attempt, unit, expected) in [(1, 0.5, 500), (2, 0.5, 1_000), (5, 0.25, 4_000), (1, 0.0, 0)] {
        let run = RunState { attempt, ..run() };
        let decision = after_attempt(&policy, &run, &RETRY, NOW, unit);
        assert_eq!(decision, retry_in(Duration::from_millis(expected)), "attempt {attempt}, unit {unit}");
    }
    let decorrelated = Policy { jitter: Jitter::Decorrelated, ..policy };
    let run = RunState { previous_backoff: Some(secs(4)), ..run() };
    let decision = after_attempt(&decorrelated, &run, &RETRY, NOW, 0.5);
    assert_eq!(decision, retry_in(Duration::from_millis(6_500)));
}

#[test]
fn the_backoff_is_in_whole_milliseconds_and_is_what_the_task_waits() {
    let policy = Policy { backoff: Backoff::Fixed { delay: Duration::from_micros(1_001) }, ..policy() };
    let decision = after_attempt(&policy, &run(), &RETRY, NOW, 0.5);
    assert_eq!(decision, retry_in(Duration::from_millis(2)));
}

#[test]
fn a_retry_after_beyond_the_policys_patience_ends_the_task() {
    let policy = Policy { retry_after_max: Some(secs(60)), ..policy() };
    for (asked, expected) in
        [(60, retry_in(secs(60))), (61, exhausted(Reason::RetryAfter)), (u64::MAX, exhausted(Reason::RetryAfter))]
    {
        assert_eq!(after_attempt(&policy, &run(), &asking(asked), NOW, 0.5), expected, "{asked}");
    }
    // It bounds what the dependency asks for, not the policy's own backoff.
    let strict = Policy { retry_after_max: Some(Duration::ZERO), ..policy };
    assert_eq!(after_attempt(&strict, &run(), &RETRY, NOW, 0.5), retry_in(secs(10)));
    assert_eq!(after_attempt(&strict, &run(), &asking(0), NOW, 0.5), retry_in(secs(10)));
    assert_eq!(after_attempt(&strict, &run(), &asking(1), NOW, 0.5), exhausted(Reason::RetryAfter));
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
        let run = RunState { deadline_at, estimate: secs(estimate), ..run() };
        let verdict = asked.map_or(RETRY, asking);
        assert_eq!(decide(&run, verdict), expected, "{left} ms left, estimate {estimate} s, asked {asked:?}");
    }
}

#[test]
fn used_up_attempts_are_the_reason_even_when_time_is_up_too() {
    let run = RunState { attempt: 6, deadline_at: NOW, ..run() };
    assert_eq!(decide(&run, asking(u64::MAX)), exhausted(Reason::Attempts));
}

#[test]
fn an_attempt_that_a_crash_cut_off_counts_and_leaves_its_outcome_unknown() {
    let after = |run| after_lost_lease(&policy(), &run, NOW, 0.5);
    assert_eq!(after(run()), retry_in(secs(10)));
    assert_eq!(after(RunState { attempt: 5, ..run() }), retry_in(secs(10)));
    assert_eq!(after(RunState { attempt: 6, ..run() }), exhausted(Reason::OutcomeUnknown));
    assert_eq!(after(RunState { attempt: 1, max_attempts: 1, ..run() }), exhausted(Reason::OutcomeUnknown));
    assert_eq!(after(RunState { deadline_at: NOW, ..run() }), exhausted(Reason::Deadline));
}

#[test]
fn what_was_not_sent_waits_a_pause_and_counts_for_nothing() {
    let put_off = |millis| Decision::PutOff { until: NOW.after(Duration::from_millis(millis)) };
    let too_late = exhausted(Reason::Deadline);
    // pause, ms to the deadline, estimate in s, unit, decision
    let cases = [
        (BODY_PAUSE, 3_600_000, 1, 0.0, put_off(12_000)),
        (BODY_PAUSE, 3_600_000, 1, 0.5, put_off(15_000)),
        (BODY_PAUSE, 3_600_000, 1, 0.75, put_off(16_500)),
        // Half of the time until the last moment for a send, down to a second.
        (BODY_PAUSE, 20_000, 0, 0.5, put_off(10_000)),
        (BODY_PAUSE, 20_000, 11, 0.5, put_off(4_500)),
        (BODY_PAUSE, 5_000, 1, 0.5, put_off(2_000)),
        (BODY_PAUSE, 2_001, 0, 0.5, put_off(1_001)),
        (BODY_PAUSE, 1_600, 0, 0.5, put_off(1_000)),
        // An estimate beyond the attempt timeout counts as the timeout, 30 s.
        (BODY_PAUSE, 40_000, 500, 0.5, put_off(5_000)),
        // No send would come to its end.
        (BODY_PAUSE, 1_999, 1, 0.5, too_late),
        (BODY_PAUSE, 1_000, 0, 0.5, too_late),
        (BODY_PAUSE, 0, 0, 0.5, too_late),
        (LOCAL_PAUSE, 3_600_000, 1, 0.0, put_off(800)),
        (LOCAL_PAUSE, 3_600_000, 1, 0.5, put_off(1_000)),
        (LOCAL_PAUSE, 3_600_000, 1, 0.75, put_off(1_100)),
        // Half of what is left, down to a tenth of a second.
        (LOCAL_PAUSE, 1_800, 1, 0.5, put_off(400)),
        (LOCAL_PAUSE, 1_100, 1, 0.5, put_off(100)),
        (LOCAL_PAUSE, 101, 0, 0.5, put_off(100)),
        (LOCAL_PAUSE, 100, 0, 0.5, too_late),
        (LOCAL_PAUSE, 1_000, 1, 0.5, too_late),
        (LOCAL_PAUSE, 0, 0, 0.5, too_late),
    ];
    for (pause, left, estimate, unit, expected) in cases {
        // However many attempts there were, and however many failed by DNS: this was none of them.
        for (attempt, dns_failures) in [(1, 0), (2, 1), (6, 2), (7, 0)] {
            let deadline_at = NOW.after(Duration::from_millis(left));
            let run = RunState { attempt, deadline_at, estimate: secs(estimate), dns_failures, ..run() };
            let decision = after_attempt(&policy(), &run, &Verdict::NotSent { pause }, NOW, unit);
            assert_eq!(decision, expected, "{pause:?}, {left} ms left, estimate {estimate} s, unit {unit}");
        }
    }
    for (pause, longest) in [(BODY_PAUSE, 18_000), (LOCAL_PAUSE, 1_200)] {
        let broken = after_attempt(&policy(), &run(), &Verdict::NotSent { pause }, NOW, f64::NAN);
        assert_eq!(broken, put_off(longest), "a broken source of randomness waits longest");
    }
}

#[test]
fn a_send_gets_the_attempt_timeout_or_what_is_left() {
    let send = |seconds| SendCheck::SendNow { timeout: secs(seconds) };
    // s to the deadline, estimate, attempt timeout
    let cases = [
        (100, 0, 30, send(30)),
        (30, 0, 30, send(30)),
        (29, 0, 30, send(29)),
        (5, 5, 30, send(5)),
        (5, 6, 30, SendCheck::TooLate),
        // The estimate is held to the timeout.
        (30, 600, 30, send(30)),
        (29, 600, 30, SendCheck::TooLate),
        (0, 0, 30, SendCheck::TooLate),
    ];
    for (left, estimate, timeout, expected) in cases {
        let fit = before_send(NOW.after(secs(left)), secs(estimate), secs(timeout), NOW);
        assert_eq!(fit, expected, "{left} s left, estimate {estimate} s, timeout {timeout} s");
    }
    assert_eq!(before_send(NOW, Duration::ZERO, secs(30), NOW.after(secs(1))), SendCheck::TooLate);
    let at_the_last_millisecond = before_send(NOW.after(Duration::from_millis(1)), Duration::ZERO, secs(30), NOW);
    assert_eq!(at_the_last_millisecond, SendCheck::SendNow { timeout: Duration::from_millis(1) });
}

#[test]
fn a_fresh_task_is_always_sent_however_slow_its_dependency() {
    let policy = Policy::default();
    let deadline_at = NOW.after(policy.total_budget);
    let fit = before_send(deadline_at, Duration::MAX, policy.attempt_timeout, NOW);
    assert_eq!(fit, SendCheck::SendNow { timeout: policy.attempt_timeout });
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
                        let run = RunState { attempt, deadline_at, estimate, ..run() };
                        let after = asked.map(secs);
                        for verdict in [asked.map_or(RETRY, asking), DNS, Verdict::Overloaded { after }] {
                            let decision = after_attempt(&policy, &run, &verdict, NOW, unit);
                            let Decision::Retry { at, backoff, .. } = decision else { continue };
                            retries += 1;
                            assert!(attempt < 6, "{run:?}");
                            assert_eq!(at, NOW.after(backoff), "{run:?}");
                            let asked = if verdict == DNS { 0 } else { asked.unwrap_or(0) };
                            assert!(backoff >= secs(asked), "{run:?}");
                            let fit = before_send(deadline_at, estimate, policy.attempt_timeout, at);
                            assert_ne!(fit, SendCheck::TooLate, "{run:?}");
                        }
                    }
                }
            }
        }
    }
    assert!(retries > 1_000, "{retries}");
}
