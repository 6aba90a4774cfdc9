//! The policies of a world: some that never change, and one that is changed and deleted all the time.

use std::time::Duration;

use redrive_core::policy::{BackoffKind, JitterKind, Spec};

use crate::random::Random;

/// The policies that never change, by name.
pub const NAMED: [&str; 3] = ["default", "patient", "strict"];
/// The policy that is changed and deleted while tasks use it. Those tasks override all of it except, mostly,
/// `retryAfterMaxMs`.
pub const SHIFTING: &str = "shifting";

/// The policy with this name.
pub fn base(name: &str) -> Spec {
    match name {
        "patient" => Spec {
            max_attempts: Some(8),
            backoff: Some(BackoffKind::Schedule),
            schedule_ms: Some(vec![0, 30_000, 120_000, 600_000]),
            jitter_type: Some(JitterKind::Proportional),
            jitter_ratio: Some(0.2),
            total_budget_ms: Some(2 * 3_600_000),
            attempt_timeout_ms: Some(20_000),
            connect_timeout_ms: Some(3_000),
            ..Spec::default()
        },
        "strict" => Spec {
            max_attempts: Some(2),
            backoff: Some(BackoffKind::Fixed),
            initial_delay_ms: Some(5_000),
            jitter_type: Some(JitterKind::None),
            total_budget_ms: Some(120_000),
            attempt_timeout_ms: Some(10_000),
            connect_timeout_ms: Some(2_000),
            ..Spec::default()
        },
        _ => Spec { total_budget_ms: Some(3_600_000), ..Spec::default() },
    }
}

/// Draws a complete policy.
pub fn spec(random: &mut Random) -> Spec {
    let ms = |random: &mut Random, low: u64, high: u64| {
        let drawn = random.duration(Duration::from_millis(low), Duration::from_millis(high));
        u64::try_from(drawn.as_millis()).unwrap_or(high).max(1)
    };
    let attempt_timeout_ms = ms(random, 200, 60_000);
    let initial_delay_ms = ms(random, 1, 20_000);
    let backoff = *random.pick(&[
        BackoffKind::Exponential,
        BackoffKind::Exponential,
        BackoffKind::Linear,
        BackoffKind::Fixed,
        BackoffKind::Schedule,
    ]);
    let jitter_type = match backoff {
        // Decorrelated jitter defines its own growth.
        BackoffKind::Exponential => *random.pick(&[
            JitterKind::Full,
            JitterKind::Equal,
            JitterKind::Decorrelated,
            JitterKind::Proportional,
            JitterKind::None,
        ]),
        _ => *random.pick(&[JitterKind::Full, JitterKind::Equal, JitterKind::Proportional, JitterKind::None]),
    };
    Spec {
        context: None,
        max_attempts: Some(*random.pick(&[1, 1, 2, 2, 3, 4, 6, 10])),
        backoff: Some(backoff),
        jitter_type: Some(jitter_type),
        jitter_ratio: (jitter_type == JitterKind::Proportional).then_some(0.3),
        initial_delay_ms: (backoff != BackoffKind::Schedule).then_some(initial_delay_ms),
        multiplier: (backoff == BackoffKind::Exponential).then_some(2.0),
        max_delay_ms: matches!(backoff, BackoffKind::Exponential | BackoffKind::Linear)
            .then_some(initial_delay_ms.max(ms(random, 1_000, 300_000))),
        schedule_ms: (backoff == BackoffKind::Schedule)
            .then(|| vec![0, ms(random, 100, 5_000), ms(random, 1_000, 300_000)]),
        total_budget_ms: Some(attempt_timeout_ms + ms(random, 1_000, 3_600_000)),
        attempt_timeout_ms: Some(attempt_timeout_ms),
        connect_timeout_ms: Some(attempt_timeout_ms.min(ms(random, 100, 5_000))),
        retryable_status_codes: None,
        retry_after_max_ms: random.chance(0.3).then(|| ms(random, 1_000, 600_000)),
        // A paused lane waits for an operator: its tasks would not end.
        pause_on_gone: None,
        approval: None,
    }
}
