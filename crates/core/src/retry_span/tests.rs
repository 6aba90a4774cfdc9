use super::*;
use crate::backoff;
use crate::policy::{Context, Spec};

fn policy(json: &str) -> Policy {
    let spec: Spec = serde_json::from_str(json).unwrap();
    Policy::resolve(&spec).unwrap()
}

#[test]
fn the_span_of_a_policy_is_the_sum_of_its_waits() {
    // policy, attempts, mean ms, most ms, text
    for (json, attempts, mean, most, text) in [
        (r"{}", 6, 15_500, 31_000, "6 attempts over about 15s, at most 31s"),
        (r#"{ "jitterType": "EQUAL" }"#, 6, 23_250, 31_000, "6 attempts over about 23s, at most 31s"),
        (r#"{ "jitterType": "NONE" }"#, 6, 31_000, 31_000, "6 attempts over 31s"),
        (r#"{ "backoff": "linear", "maxAttempts": 4 }"#, 4, 3_000, 6_000, "4 attempts over about 3s, at most 6s"),
        (r#"{ "backoff": "fixed", "maxAttempts": 3 }"#, 3, 1_000, 2_000, "3 attempts over about 1s, at most 2s"),
        (r#"{ "context": "webhook" }"#, 6, 1_056_000, 1_267_200, "6 attempts over about 17m 36s, at most 21m 7s"),
        (r#"{ "context": "sync" }"#, 4, 3_500, 7_000, "4 attempts over about 3.5s, at most 7s"),
        (r#"{ "backoff": "schedule", "scheduleMs": [0] }"#, 2, 0, 0, "2 attempts over 0ms"),
        (r#"{ "maxAttempts": 1 }"#, 1, 0, 0, "1 attempt, no retries"),
    ] {
        let span = RetrySpan::of(&policy(json));
        let expected = (attempts, ms(mean), ms(most), false);
        assert_eq!((span.attempts, span.mean, span.most, span.cut_by_budget), expected, "{json}");
        assert_eq!(span.to_string(), text, "{json}");
    }
}

#[test]
fn a_span_ends_with_the_total_budget() {
    let sometimes = RetrySpan::of(&policy(r#"{ "maxAttempts": 4, "totalBudgetMs": 3000 }"#));
    assert!(sometimes.cut_by_budget);
    assert_eq!((sometimes.attempts, sometimes.mean, sometimes.most), (4, ms(3_000), ms(3_000)));
    assert_eq!(sometimes.to_string(), "at most 4 attempts within 3s, the total budget");
    let never = policy(r#"{ "backoff": "fixed", "jitterType": "NONE", "maxAttempts": 5, "totalBudgetMs": 2500 }"#);
    let never = RetrySpan::of(&never);
    assert_eq!((never.attempts, never.mean, never.cut_by_budget), (3, ms(2_000), true));
}

#[test]
fn no_preset_is_cut_by_its_budget() {
    for context in Context::ALL {
        let policy = Policy::resolve(&Spec { context: Some(context), ..Spec::default() }).unwrap();
        let span = RetrySpan::of(&policy);
        assert_eq!((span.attempts, span.cut_by_budget), (policy.max_attempts, false), "{context}");
    }
}

/// Draws schedules with the code that draws them for tasks.
#[test]
fn the_mean_and_the_most_are_those_of_drawn_schedules() {
    let mut random = 7_u64;
    for (backoff, fields) in [
        ("exponential", r#""initialDelayMs": 1000, "maxDelayMs": 30000"#),
        ("exponential", r#""initialDelayMs": 5, "maxDelayMs": 7"#),
        ("exponential", r#""initialDelayMs": 100, "maxDelayMs": 300"#),
        ("exponential", r#""initialDelayMs": 1, "maxDelayMs": 1000"#),
        ("exponential", r#""initialDelayMs": 1, "maxDelayMs": 2592000000"#),
        ("exponential", r#""initialDelayMs": 500, "maxDelayMs": 500"#),
        ("linear", r#""initialDelayMs": 700, "maxDelayMs": 5000"#),
        ("fixed", r#""initialDelayMs": 700"#),
        ("schedule", r#""scheduleMs": [100, 9000, 20]"#),
    ] {
        for jitter in ["FULL", "EQUAL", "DECORRELATED", "PROPORTIONAL", "NONE"] {
            if jitter == "DECORRELATED" && backoff != "exponential" {
                continue;
            }
            for attempts in [2, 3, 6, 12, 30] {
                let json = format!(
                    r#"{{ "backoff": "{backoff}", "jitterType": "{jitter}", "maxAttempts": {attempts},
                          "totalBudgetMs": 2592000000, {fields} }}"#
                );
                check_against_draws(&policy(&json), &json, &mut random);
            }
        }
    }
}

fn check_against_draws(policy: &Policy, json: &str, random: &mut u64) {
    const DRAWS: u32 = 4_000;
    let span = RetrySpan::of(policy);
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..DRAWS {
        let drawn = draw(policy, span.attempts, random);
        assert!(span.cut_by_budget || drawn <= span.most, "{json}: {drawn:?} is more than {:?}", span.most);
        sum += drawn.as_secs_f64();
        squares += drawn.as_secs_f64().powi(2);
    }
    let drawn = sum / f64::from(DRAWS);
    let spread = (squares / f64::from(DRAWS) - drawn * drawn).max(0.0).sqrt();
    // Five standard errors of the mean that was drawn, and what the grid may be off by.
    let tolerance = 5.0 * spread / f64::from(DRAWS).sqrt() + 0.02 * drawn + 1e-6;
    let mean = span.mean.as_secs_f64();
    assert!((mean - drawn).abs() <= tolerance, "{json}: the mean is {mean} s, {drawn} s were drawn");
}

/// The sum of the waits of one run.
fn draw(policy: &Policy, attempts: u32, random: &mut u64) -> Duration {
    let (mut sum, mut previous) = (Duration::ZERO, None);
    for retry in 1..attempts {
        let wait = backoff::delay(policy, retry, previous, unit(random));
        previous = Some(wait);
        sum += wait;
    }
    sum
}

/// A pseudo-random number in [0, 1), by splitmix64.
fn unit(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    f64::from(u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap()) / (f64::from(u32::MAX) + 1.0)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
