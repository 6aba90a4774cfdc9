//! From a spec to a policy: defaults filled in, ranges and combinations checked.
//!
//! Fields that do not apply to the chosen backoff or jitter (a multiplier beside `fixed`, a schedule beside
//! `exponential`) are ignored. A task's overrides are merged with its base policy before they come here, so a task that
//! only says `"backoff": "fixed"` still brings the base's multiplier along, which is not a mistake. Their ranges are
//! checked nevertheless: a value that is out of range is wrong in every policy. The one exception is a schedule without
//! a backoff: it is an error, because the schedule would be ignored.

use std::time::Duration;

use super::check::{self, Check};
use super::defaults::{self, Defaults};
use super::{Approval, BackoffKind, FieldProblem, Invalid, JitterKind, Limits, Policy, Spec};
use crate::backoff::Backoff;
use crate::jitter::Jitter;

impl Spec {
    /// Whether both resolve to the same policy, whichever fields each of them leaves out.
    pub fn is_equivalent_to(&self, other: &Spec) -> bool {
        let same_policy = || matches!((Policy::resolve(self), Policy::resolve(other)), (Ok(a), Ok(b)) if a == b);
        self == other || self.approval == other.approval && same_policy()
    }
}

impl Policy {
    /// The policy that `spec` describes, or everything that is wrong with it.
    pub fn resolve(spec: &Spec) -> Result<Policy, Invalid> {
        let (policy, problems) = Policy::resolve_as_far_as_possible(spec);
        if problems.is_empty() { Ok(policy) } else { Err(Invalid { problems }) }
    }

    /// The policy that `spec` comes closest to, and everything that is wrong with it. For the linter, which reports as
    /// much as possible; the engine never uses such a policy.
    pub fn resolve_as_far_as_possible(spec: &Spec) -> (Policy, Vec<FieldProblem>) {
        let mut check = Check::default();
        let defaults = Defaults::of(spec.context);
        let kind = spec.backoff.unwrap_or(defaults.backoff);

        let backoff = backoff(spec, kind, &defaults, &mut check);
        let jitter = jitter(spec, kind, &mut check);
        let max_attempts = check
            .number("maxAttempts", spec.max_attempts, Limits::MAX_ATTEMPTS)
            .unwrap_or_else(|| default_attempts(spec, kind, &defaults));
        let total_budget = check
            .duration("totalBudgetMs", spec.total_budget_ms, Limits::TOTAL_BUDGET)
            .unwrap_or(defaults.total_budget);
        let attempt_timeout = check
            .duration("attemptTimeoutMs", spec.attempt_timeout_ms, Limits::ATTEMPT_TIMEOUT)
            .unwrap_or_else(|| defaults.attempt_timeout.min(share(total_budget, max_attempts)));
        check.at_most("attemptTimeoutMs", attempt_timeout, "totalBudgetMs", total_budget);
        let connect_timeout = check
            .duration("connectTimeoutMs", spec.connect_timeout_ms, Limits::CONNECT_TIMEOUT)
            .unwrap_or(defaults.connect_timeout.min(attempt_timeout));
        check.at_most("connectTimeoutMs", connect_timeout, "attemptTimeoutMs", attempt_timeout);
        if let Some(codes) = &spec.retryable_status_codes {
            check.status_codes("retryableStatusCodes", codes);
        }
        let retry_after_max = check.duration("retryAfterMaxMs", spec.retry_after_max_ms, Limits::RETRY_AFTER_MAX);
        if let Some(approval) = &spec.approval {
            check.characters("approval.by", approval.by.trim(), 1..=Approval::BY_CHARS);
            let reason = approval.reason.as_deref().unwrap_or_default();
            check.characters("approval.reason", reason, 0..=Approval::REASON_CHARS);
        }

        let policy = Policy {
            context: spec.context,
            max_attempts,
            backoff,
            jitter,
            total_budget,
            attempt_timeout,
            connect_timeout,
            retryable_status_codes: spec.retryable_status_codes.clone(),
            retry_after_max,
            pause_on_gone: spec.pause_on_gone.unwrap_or(false),
        };
        (policy, check.done())
    }
}

fn backoff(spec: &Spec, kind: BackoffKind, defaults: &Defaults, check: &mut Check) -> Backoff {
    let initial = check.duration("initialDelayMs", spec.initial_delay_ms, Limits::DELAY);
    let multiplier = check.number("multiplier", spec.multiplier, Limits::MULTIPLIER).unwrap_or(defaults::MULTIPLIER);
    let max = check.duration("maxDelayMs", spec.max_delay_ms, Limits::DELAY);
    // If only one of the two is given, it takes precedence over the default of the other.
    let initial = initial.unwrap_or(defaults::INITIAL_DELAY.min(max.unwrap_or(defaults::INITIAL_DELAY)));
    let max = max.unwrap_or(defaults::MAX_DELAY.max(initial));
    if matches!(kind, BackoffKind::Exponential | BackoffKind::Linear) {
        check.at_least("maxDelayMs", max, "initialDelayMs", initial);
    }
    let delays = schedule(spec, kind, defaults, check);
    match kind {
        BackoffKind::Exponential => Backoff::Exponential { initial, multiplier, max },
        BackoffKind::Linear => Backoff::Linear { initial, max },
        BackoffKind::Fixed => Backoff::Fixed { delay: initial },
        BackoffKind::Schedule => Backoff::Schedule { delays },
    }
}

fn schedule(spec: &Spec, kind: BackoffKind, defaults: &Defaults, check: &mut Check) -> Vec<Duration> {
    const FIELD: &str = "scheduleMs";
    let Some(delays) = &spec.schedule_ms else {
        // Of a context's schedule, the waits that no retry has are left out: a policy shows as many as it makes retries.
        let retries = spec.max_attempts.unwrap_or(defaults.max_attempts).saturating_sub(1).max(1);
        let used = usize::try_from(retries).unwrap_or(usize::MAX);
        if kind == BackoffKind::Schedule && defaults.schedule_ms.is_empty() {
            check.problem(FIELD, "must be given for the backoff \"schedule\"");
        }
        return defaults.schedule_ms.iter().copied().take(used).map(Duration::from_millis).collect();
    };
    if spec.backoff.is_none() && kind != BackoffKind::Schedule {
        check.problem(FIELD, "needs the backoff \"schedule\"");
    }
    check.delays(FIELD, delays)
}

fn jitter(spec: &Spec, kind: BackoffKind, check: &mut Check) -> Jitter {
    let ratio = spec.jitter_ratio.unwrap_or(defaults::JITTER_RATIO);
    if !(ratio > 0.0 && ratio <= Limits::MAX_JITTER_RATIO) {
        check.problem("jitterRatio", format!("must be above 0 and at most {}, got {ratio}", Limits::MAX_JITTER_RATIO));
    }
    let jitter_type = spec.jitter_type.unwrap_or(match kind {
        BackoffKind::Schedule => JitterKind::Proportional,
        _ => JitterKind::Full,
    });
    match jitter_type {
        JitterKind::Full => Jitter::Full,
        JitterKind::Equal => Jitter::Equal,
        JitterKind::Decorrelated => {
            if kind != BackoffKind::Exponential {
                check.problem("jitterType", "DECORRELATED needs the backoff \"exponential\"");
            }
            Jitter::Decorrelated
        }
        JitterKind::Proportional => Jitter::Proportional { ratio },
        JitterKind::None => Jitter::None,
    }
}

/// The default attempt timeout in a short total budget: half of it, so that there is time for another attempt.
fn share(total_budget: Duration, max_attempts: u32) -> Duration {
    match max_attempts {
        1 => total_budget,
        _ => Duration::from_millis(check::millis(total_budget / 2).max(1)),
    }
}

/// The default number of attempts: with an own schedule, one retry for each of its delays.
fn default_attempts(spec: &Spec, kind: BackoffKind, defaults: &Defaults) -> u32 {
    match &spec.schedule_ms {
        Some(delays) if kind == BackoffKind::Schedule => {
            u32::try_from(delays.len()).unwrap_or(u32::MAX).saturating_add(1).min(*Limits::MAX_ATTEMPTS.end())
        }
        _ => defaults.max_attempts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Context;

    const MONTH_MS: u64 = 2_592_000_000;

    fn spec(json: &str) -> Spec {
        serde_json::from_str(json).unwrap()
    }

    fn resolve(json: &str) -> Policy {
        Policy::resolve(&spec(json)).unwrap()
    }

    fn problems(json: &str) -> Vec<String> {
        match Policy::resolve(&spec(json)) {
            Ok(policy) => panic!("{json} is valid: {policy:?}"),
            Err(invalid) => invalid.problems.iter().map(ToString::to_string).collect(),
        }
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn an_empty_spec_is_the_default_policy() {
        let policy = Policy::resolve(&Spec::default()).unwrap();
        assert_eq!(policy, Policy::default());
        assert_eq!(policy.max_attempts, 6);
        assert_eq!(policy.backoff, Backoff::Exponential { initial: ms(1_000), multiplier: 2.0, max: ms(30_000) });
        assert_eq!(policy.jitter, Jitter::Full);
        assert_eq!(policy.total_budget, ms(86_400_000));
        assert_eq!(policy.attempt_timeout, ms(30_000));
        assert_eq!(policy.connect_timeout, ms(5_000));
        assert_eq!(policy.retryable_status_codes, None);
        assert_eq!(policy.retry_after_max, None);
    }

    #[test]
    fn every_field_that_is_given_is_taken() {
        let policy = resolve(
            r#"{ "maxAttempts": 3, "backoff": "exponential", "jitterType": "PROPORTIONAL", "jitterRatio": 0.5,
                 "initialDelayMs": 200, "multiplier": 3.5, "maxDelayMs": 9000, "totalBudgetMs": 60000,
                 "attemptTimeoutMs": 7000, "connectTimeoutMs": 900, "retryableStatusCodes": [503, 429],
                 "retryAfterMaxMs": 0, "pauseOnGone": true }"#,
        );
        let expected = Policy {
            context: None,
            max_attempts: 3,
            backoff: Backoff::Exponential { initial: ms(200), multiplier: 3.5, max: ms(9_000) },
            jitter: Jitter::Proportional { ratio: 0.5 },
            total_budget: ms(60_000),
            attempt_timeout: ms(7_000),
            connect_timeout: ms(900),
            retryable_status_codes: Some([429, 503].into()),
            retry_after_max: Some(Duration::ZERO),
            pause_on_gone: true,
        };
        assert_eq!(policy, expected);
    }

    #[test]
    fn each_backoff_takes_the_fields_that_apply_to_it() {
        let fields = r#""initialDelayMs": 700, "multiplier": 3, "maxDelayMs": 900, "scheduleMs": [5, 0]"#;
        let cases = [
            ("exponential", Backoff::Exponential { initial: ms(700), multiplier: 3.0, max: ms(900) }),
            ("linear", Backoff::Linear { initial: ms(700), max: ms(900) }),
            ("fixed", Backoff::Fixed { delay: ms(700) }),
            ("schedule", Backoff::Schedule { delays: vec![ms(5), ms(0)] }),
        ];
        for (kind, expected) in cases {
            assert_eq!(resolve(&format!(r#"{{ "backoff": "{kind}", {fields} }}"#)).backoff, expected);
        }
    }

    #[test]
    fn a_longest_delay_does_not_bind_a_backoff_that_has_none() {
        let policy = resolve(r#"{ "backoff": "fixed", "initialDelayMs": 5000, "maxDelayMs": 10 }"#);
        assert_eq!(policy.backoff, Backoff::Fixed { delay: ms(5_000) });
    }

    #[test]
    fn a_default_makes_room_for_what_is_given() {
        let backoff = |initial, max| Backoff::Exponential { initial: ms(initial), multiplier: 2.0, max: ms(max) };
        assert_eq!(resolve(r#"{ "initialDelayMs": 60000 }"#).backoff, backoff(60_000, 60_000));
        assert_eq!(resolve(r#"{ "initialDelayMs": 29000 }"#).backoff, backoff(29_000, 30_000));
        assert_eq!(resolve(r#"{ "maxDelayMs": 500 }"#).backoff, backoff(500, 500));
        // total budget, attempt timeout, connect timeout
        let cases = [
            (r#"{ "totalBudgetMs": 40000 }"#, (40_000, 20_000, 5_000)),
            (r#"{ "totalBudgetMs": 6000 }"#, (6_000, 3_000, 3_000)),
            (r#"{ "totalBudgetMs": 6000, "maxAttempts": 1 }"#, (6_000, 6_000, 5_000)),
            (r#"{ "totalBudgetMs": 1 }"#, (1, 1, 1)),
            (r#"{ "attemptTimeoutMs": 2000 }"#, (86_400_000, 2_000, 2_000)),
            (r#"{ "attemptTimeoutMs": 900000 }"#, (86_400_000, 900_000, 5_000)),
        ];
        for (json, (total, attempt, connect)) in cases {
            let policy = resolve(json);
            let times = (policy.total_budget, policy.attempt_timeout, policy.connect_timeout);
            assert_eq!(times, (ms(total), ms(attempt), ms(connect)), "{json}");
        }
    }

    #[test]
    fn a_schedule_brings_its_own_defaults() {
        let policy = resolve(r#"{ "backoff": "schedule", "scheduleMs": [30000, 120000, 600000, 3600000] }"#);
        assert_eq!(policy.max_attempts, 5);
        assert_eq!(policy.jitter, Jitter::Proportional { ratio: 0.2 });
        let given = resolve(r#"{ "backoff": "schedule", "scheduleMs": [1], "maxAttempts": 9, "jitterType": "NONE" }"#);
        assert_eq!((given.max_attempts, given.jitter), (9, Jitter::None));
        // The longest schedule still has no more attempts than any policy may.
        let longest = Spec { schedule_ms: Some(vec![0; 100]), backoff: Some(BackoffKind::Schedule), ..Spec::default() };
        assert_eq!(Policy::resolve(&longest).unwrap().max_attempts, 100);
    }

    #[test]
    fn a_context_is_inherited_from_and_makes_way_for_what_is_given() {
        let policy = resolve(r#"{ "context": "sync", "maxAttempts": 3, "totalBudgetMs": 2000 }"#);
        assert_eq!((policy.context, policy.max_attempts), (Some(Context::Sync), 3));
        // total budget, attempt timeout, connect timeout
        assert_eq!(
            (policy.total_budget, policy.attempt_timeout, policy.connect_timeout),
            (ms(2_000), ms(1_000), ms(1_000))
        );
        assert_eq!(resolve(r#"{ "context": "sync" }"#).attempt_timeout, ms(5_000));
        let backoff = |json| resolve(json).backoff;
        let exponential = Backoff::Exponential { initial: ms(500), multiplier: 2.0, max: ms(500) };
        assert_eq!(backoff(r#"{ "context": "webhook", "backoff": "exponential", "maxDelayMs": 500 }"#), exponential);
    }

    #[test]
    fn a_schedule_of_ones_own_replaces_the_contexts_and_its_number_of_retries() {
        let own = resolve(r#"{ "context": "webhook", "scheduleMs": [1000, 9000, 60000] }"#);
        assert_eq!(own.backoff, Backoff::Schedule { delays: vec![ms(1_000), ms(9_000), ms(60_000)] });
        assert_eq!(own.max_attempts, 4);
        // All of the context's own schedule, and its last delay once more.
        let all = resolve(r#"{ "context": "webhook", "maxAttempts": 9 }"#);
        assert_eq!(
            (all.max_attempts, all.backoff.ceiling(7), all.backoff.ceiling(8)),
            (9, ms(14_400_000), ms(14_400_000))
        );
        assert_eq!(
            problems(r#"{ "context": "sync", "scheduleMs": [1] }"#),
            [r#"scheduleMs needs the backoff "schedule""#]
        );
    }

    #[test]
    fn an_approval_says_who_in_few_words() {
        let json = |by: &str, reason: &str| {
            format!(
                r#"{{ "approval": {{ "by": "{by}", "until": "2027-01-31", "maxAttempts": 9, "reason": "{reason}" }} }}"#
            )
        };
        resolve(&json("Board", &"ä".repeat(1_000)));
        for nobody in ["", "  "] {
            assert_eq!(problems(&json(nobody, "")), ["approval.by must have 1 to 200 characters, got 0"]);
        }
        assert_eq!(
            problems(&json(&"a".repeat(201), &"b".repeat(1_001))),
            [
                "approval.by must have 1 to 200 characters, got 201",
                "approval.reason must have 0 to 1000 characters, got 1001"
            ]
        );
    }

    #[test]
    fn a_proportional_jitter_without_a_ratio_takes_the_default_one() {
        assert_eq!(resolve(r#"{ "jitterType": "PROPORTIONAL" }"#).jitter, Jitter::Proportional { ratio: 0.2 });
        assert_eq!(resolve(r#"{ "jitterRatio": 0.7 }"#).jitter, Jitter::Full);
    }

    #[test]
    fn both_ends_of_every_range_are_valid_and_the_next_values_are_not() {
        // field, least, most, what else the spec says
        let roomy = r#""totalBudgetMs": 2592000000"#;
        let whole = [
            ("maxAttempts", 1, 100, roomy),
            ("initialDelayMs", 1, MONTH_MS, roomy),
            ("maxDelayMs", 1, MONTH_MS, r#""initialDelayMs": 1"#),
            ("totalBudgetMs", 1, MONTH_MS, r#""maxAttempts": 1"#),
            ("attemptTimeoutMs", 1, 900_000, roomy),
            ("connectTimeoutMs", 1, 900_000, r#""attemptTimeoutMs": 900000"#),
            ("retryAfterMaxMs", 0, MONTH_MS, roomy),
        ];
        for (field, least, most, rest) in whole {
            let json = |value: u64| format!(r#"{{ "{field}": {value}, {rest} }}"#);
            resolve(&json(least));
            resolve(&json(most));
            let refused = |value| vec![format!("{field} must be {least} to {most}, got {value}")];
            assert_eq!(problems(&json(most + 1)), refused(most + 1));
            if least > 0 {
                assert_eq!(problems(&json(least - 1)), refused(least - 1));
            }
        }
    }

    #[test]
    fn fractions_are_held_to_their_ranges() {
        let with = |multiplier, jitter_ratio| Policy::resolve(&Spec { multiplier, jitter_ratio, ..Spec::default() });
        for multiplier in [1.0, 1.000_1, 100.0] {
            assert!(with(Some(multiplier), None).is_ok(), "{multiplier}");
        }
        for multiplier in [0.999, 100.1, -2.0, 0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let message = format!("multiplier must be 1 to 100, got {multiplier}");
            assert_eq!(with(Some(multiplier), None).unwrap_err().to_string(), message);
        }
        for ratio in [f64::MIN_POSITIVE, 0.2, 1.0] {
            assert!(with(None, Some(ratio)).is_ok(), "{ratio}");
        }
        for ratio in [0.0, -0.1, 1.001, f64::NAN, f64::INFINITY] {
            let message = format!("jitterRatio must be above 0 and at most 1, got {ratio}");
            assert_eq!(with(None, Some(ratio)).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_combination_that_cannot_work_names_its_field() {
        let cases = [
            (
                r#"{ "initialDelayMs": 5000, "maxDelayMs": 4999 }"#,
                "maxDelayMs must be at least initialDelayMs (5000), got 4999",
            ),
            (
                r#"{ "backoff": "linear", "initialDelayMs": 10, "maxDelayMs": 9 }"#,
                "maxDelayMs must be at least initialDelayMs (10), got 9",
            ),
            (r#"{ "backoff": "schedule" }"#, r#"scheduleMs must be given for the backoff "schedule""#),
            (r#"{ "backoff": "schedule", "scheduleMs": [] }"#, "scheduleMs must have 1 to 100 entries, got 0"),
            (
                r#"{ "backoff": "schedule", "scheduleMs": [0, 2592000001] }"#,
                "scheduleMs entry 2 must be 0 to 2592000000, got 2592000001",
            ),
            (r#"{ "scheduleMs": [1000] }"#, r#"scheduleMs needs the backoff "schedule""#),
            (
                r#"{ "backoff": "linear", "jitterType": "DECORRELATED" }"#,
                r#"jitterType DECORRELATED needs the backoff "exponential""#,
            ),
            (
                r#"{ "backoff": "fixed", "jitterType": "DECORRELATED" }"#,
                r#"jitterType DECORRELATED needs the backoff "exponential""#,
            ),
            (
                r#"{ "backoff": "schedule", "scheduleMs": [1], "jitterType": "DECORRELATED" }"#,
                r#"jitterType DECORRELATED needs the backoff "exponential""#,
            ),
            (
                r#"{ "totalBudgetMs": 5000, "attemptTimeoutMs": 5001 }"#,
                "attemptTimeoutMs must be at most totalBudgetMs (5000), got 5001",
            ),
            (
                r#"{ "attemptTimeoutMs": 300, "connectTimeoutMs": 301 }"#,
                "connectTimeoutMs must be at most attemptTimeoutMs (300), got 301",
            ),
            (
                r#"{ "retryableStatusCodes": [204, 503] }"#,
                "retryableStatusCodes must be 300 to 599, got 204, which is a success",
            ),
            (r#"{ "retryableStatusCodes": [600] }"#, "retryableStatusCodes must be 300 to 599, got 600"),
            (r#"{ "retryableStatusCodes": [199] }"#, "retryableStatusCodes must be 300 to 599, got 199"),
        ];
        for (json, expected) in cases {
            assert_eq!(problems(json), [expected], "{json}");
        }
    }

    #[test]
    fn every_problem_is_reported() {
        let json = r#"{ "maxAttempts": 0, "jitterType": "DECORRELATED", "backoff": "linear", "jitterRatio": 2,
                        "initialDelayMs": 0, "multiplier": 0.5, "maxDelayMs": 0, "scheduleMs": [], "totalBudgetMs": 0,
                        "attemptTimeoutMs": 0, "connectTimeoutMs": 0, "retryableStatusCodes": [200, 299],
                        "retryAfterMaxMs": 2592000001 }"#;
        let invalid = Policy::resolve(&spec(json)).unwrap_err();
        let fields: Vec<&str> = invalid.problems.iter().map(|problem| problem.field).collect();
        let expected = [
            "initialDelayMs",
            "multiplier",
            "maxDelayMs",
            "scheduleMs",
            "jitterRatio",
            "jitterType",
            "maxAttempts",
            "totalBudgetMs",
            "attemptTimeoutMs",
            "connectTimeoutMs",
            "retryableStatusCodes",
            "retryableStatusCodes",
            "retryAfterMaxMs",
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn problems_are_joined_into_one_sentence() {
        let invalid = Policy::resolve(&spec(r#"{ "maxAttempts": 101, "totalBudgetMs": 0 }"#)).unwrap_err();
        let text = "maxAttempts must be 1 to 100, got 101; totalBudgetMs must be 1 to 2592000000, got 0";
        assert_eq!(invalid.to_string(), text);
    }

    #[test]
    fn a_field_out_of_range_is_not_held_against_its_neighbours() {
        let json = r#"{ "initialDelayMs": 60000, "maxDelayMs": 2592000001 }"#;
        assert_eq!(problems(json), ["maxDelayMs must be 1 to 2592000000, got 2592000001"]);
    }

    #[test]
    fn a_hopeless_list_is_not_answered_with_a_longer_one() {
        let codes = Spec { retryable_status_codes: Some((600..=u16::MAX).collect()), ..Spec::default() };
        assert_eq!(Policy::resolve(&codes).unwrap_err().problems.len(), 10);
        let schedule =
            Spec { backoff: Some(BackoffKind::Schedule), schedule_ms: Some(vec![u64::MAX; 10_000]), ..Spec::default() };
        let text = "scheduleMs must have 1 to 100 entries, got 10000";
        assert_eq!(Policy::resolve(&schedule).unwrap_err().to_string(), text);
    }

    #[test]
    fn an_override_may_change_the_backoff_of_its_base() {
        let base = spec(r#"{ "backoff": "schedule", "scheduleMs": [1000, 5000] }"#);
        let fixed = base.overridden_by(&spec(r#"{ "backoff": "fixed", "initialDelayMs": 50 }"#));
        assert_eq!(Policy::resolve(&fixed).unwrap().backoff, Backoff::Fixed { delay: ms(50) });
        let base = spec(r#"{ "context": "webhook", "scheduleMs": [1000, 9000, 60000] }"#);
        let event = base.overridden_by(&spec(r#"{ "context": "event" }"#));
        assert_eq!(Policy::resolve(&event).unwrap().max_attempts, 6);
        let patient = base.overridden_by(&spec(r#"{ "context": "webhook-patient" }"#));
        assert_eq!(Policy::resolve(&patient).unwrap().max_attempts, 4);
        let base = spec(r#"{ "multiplier": 3, "maxDelayMs": 4000 }"#);
        let schedule = base.overridden_by(&spec(r#"{ "backoff": "schedule", "scheduleMs": [7] }"#));
        assert_eq!(Policy::resolve(&schedule).unwrap().backoff, Backoff::Schedule { delays: vec![ms(7)] });
    }
}
