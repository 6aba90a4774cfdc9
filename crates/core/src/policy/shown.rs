//! From a policy back to a spec: for showing a resolved policy, and for storing a version with its defaults of that
//! time.

use super::check::millis;
use super::{BackoffKind, JitterKind, Policy, Spec};
use crate::backoff::Backoff;
use crate::jitter::Jitter;

/// The members that a shown policy has besides its name and its fields. Readers of policies ignore them, so that a
/// shown policy can be edited and applied again.
pub const SHOWN_BESIDE: [&str; 6] = ["version", "builtIn", "createdAt", "versions", "findings", "timetable"];

impl Policy {
    /// The spec with every field that applies filled in; it resolves to this policy again.
    pub fn to_spec(&self) -> Spec {
        let (jitter_type, jitter_ratio) = match self.jitter {
            Jitter::Full => (JitterKind::Full, None),
            Jitter::Equal => (JitterKind::Equal, None),
            Jitter::Decorrelated => (JitterKind::Decorrelated, None),
            Jitter::Proportional { ratio } => (JitterKind::Proportional, Some(ratio)),
            Jitter::None => (JitterKind::None, None),
        };
        Spec {
            context: self.context,
            max_attempts: Some(self.max_attempts),
            jitter_type: Some(jitter_type),
            jitter_ratio,
            total_budget_ms: Some(millis(self.total_budget)),
            attempt_timeout_ms: Some(millis(self.attempt_timeout)),
            connect_timeout_ms: Some(millis(self.connect_timeout)),
            retryable_status_codes: self.retryable_status_codes.clone(),
            retry_after_max_ms: self.retry_after_max.map(millis),
            // Programs of earlier versions do not know the field, so that it is only given where it says something.
            pause_on_gone: self.pause_on_gone.then_some(true),
            ..backoff_fields(&self.backoff)
        }
    }
}

fn backoff_fields(backoff: &Backoff) -> Spec {
    match backoff {
        Backoff::Exponential { initial, multiplier, max } => Spec {
            backoff: Some(BackoffKind::Exponential),
            initial_delay_ms: Some(millis(*initial)),
            multiplier: Some(*multiplier),
            max_delay_ms: Some(millis(*max)),
            ..Spec::default()
        },
        Backoff::Linear { initial, max } => Spec {
            backoff: Some(BackoffKind::Linear),
            initial_delay_ms: Some(millis(*initial)),
            max_delay_ms: Some(millis(*max)),
            ..Spec::default()
        },
        Backoff::Fixed { delay } => {
            Spec { backoff: Some(BackoffKind::Fixed), initial_delay_ms: Some(millis(*delay)), ..Spec::default() }
        }
        Backoff::Schedule { delays } => Spec {
            backoff: Some(BackoffKind::Schedule),
            schedule_ms: Some(delays.iter().copied().map(millis).collect()),
            ..Spec::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_policy_shows_every_field_that_applies() {
        let shown = serde_json::to_value(Policy::default().to_spec()).unwrap();
        let expected = serde_json::json!({
            "maxAttempts": 6,
            "backoff": "exponential",
            "jitterType": "FULL",
            "initialDelayMs": 1000,
            "multiplier": 2.0,
            "maxDelayMs": 30000,
            "totalBudgetMs": 86400000,
            "attemptTimeoutMs": 30000,
            "connectTimeoutMs": 5000,
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_schedule_shows_its_delays_and_its_jitter() {
        let spec = Spec {
            backoff: Some(BackoffKind::Schedule),
            schedule_ms: Some(vec![0, 30_000]),
            retryable_status_codes: Some([503].into()),
            retry_after_max_ms: Some(60_000),
            ..Spec::default()
        };
        let shown = serde_json::to_value(Policy::resolve(&spec).unwrap().to_spec()).unwrap();
        let expected = serde_json::json!({
            "maxAttempts": 3,
            "backoff": "schedule",
            "jitterType": "PROPORTIONAL",
            "jitterRatio": 0.2,
            "scheduleMs": [0, 30000],
            "totalBudgetMs": 86400000,
            "attemptTimeoutMs": 30000,
            "connectTimeoutMs": 5000,
            "retryableStatusCodes": [503],
            "retryAfterMaxMs": 60000,
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_shown_resolves_to_the_same_policy_through_json_too() {
        let mut policies = 0;
        for backoff in ["exponential", "linear", "fixed", "schedule"] {
            for jitter in ["FULL", "EQUAL", "DECORRELATED", "PROPORTIONAL", "NONE"] {
                for rest in [
                    r#""maxAttempts": 1"#,
                    r#""jitterRatio": 0.1, "multiplier": 1.1, "initialDelayMs": 3, "maxDelayMs": 2592000000"#,
                    r#""totalBudgetMs": 17, "retryableStatusCodes": []"#,
                    r#""attemptTimeoutMs": 900000, "connectTimeoutMs": 900000, "retryableStatusCodes": [300, 599]"#,
                    r#""retryAfterMaxMs": 0, "initialDelayMs": 2592000000"#,
                    r#""context": "webhook""#,
                    r#""context": "sync", "totalBudgetMs": 17"#,
                ] {
                    let json = format!(
                        r#"{{ "backoff": "{backoff}", "jitterType": "{jitter}", "scheduleMs": [0, 1, 2592000000], {rest} }}"#
                    );
                    let spec: Spec = serde_json::from_str(&json).unwrap();
                    let Ok(policy) = Policy::resolve(&spec) else {
                        assert!(jitter == "DECORRELATED" && backoff != "exponential", "{json}");
                        continue;
                    };
                    let text = serde_json::to_string(&policy.to_spec()).unwrap();
                    let shown: Spec = serde_json::from_str(&text).unwrap();
                    assert_eq!(shown, policy.to_spec(), "{json}");
                    assert_eq!(Policy::resolve(&shown).unwrap(), policy, "{json}");
                    policies += 1;
                }
            }
        }
        assert_eq!(policies, (4 * 5 - 3) * 7);
    }
}
