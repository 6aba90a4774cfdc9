//! A policy as people write it, in JSON or TOML.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Approval, Context};
#[cfg(feature = "schema")]
use super::{Limits, check::millis};

/// The fields of a policy, each of which may be left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PolicyFields"))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Spec {
    /// The kind of work that it is for. Fields that are left out are inherited from it, and its ranges apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// The most attempts of a task, the first one included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("minimum" = *Limits::MAX_ATTEMPTS.start(), "maximum" = *Limits::MAX_ATTEMPTS.end())))]
    pub max_attempts: Option<u32>,
    /// How the wait before a retry grows.
    #[serde(skip_serializing_if = "Option::is_none", alias = "backoffType")]
    pub backoff: Option<BackoffKind>,
    /// How that wait is spread out.
    #[serde(skip_serializing_if = "Option::is_none", alias = "jitter")]
    pub jitter_type: Option<JitterKind>,
    /// The part of the wait that PROPORTIONAL jitter may add or take away, above 0 up to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = Limits::MAX_JITTER_RATIO)))]
    pub jitter_ratio: Option<f64>,
    /// The first retry's wait, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("minimum" = millis(*Limits::DELAY.start()), "maximum" = millis(*Limits::DELAY.end()))))]
    pub initial_delay_ms: Option<u64>,
    /// The factor by which an exponential wait grows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("minimum" = *Limits::MULTIPLIER.start(), "maximum" = *Limits::MULTIPLIER.end())))]
    pub multiplier: Option<f64>,
    /// The longest wait before jitter, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("minimum" = millis(*Limits::DELAY.start()), "maximum" = millis(*Limits::DELAY.end()))))]
    pub max_delay_ms: Option<u64>,
    /// The waits before the first, second, … retry, in milliseconds; the last one repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("minItems" = *Limits::SCHEDULE_ENTRIES.start(), "maxItems" = *Limits::SCHEDULE_ENTRIES.end(), "items" = schemars::json_schema!({ "type": "integer", "minimum": millis(*Limits::SCHEDULE_DELAY.start()), "maximum": millis(*Limits::SCHEDULE_DELAY.end()) }))))]
    pub schedule_ms: Option<Vec<u64>>,
    /// The time from acceptance to the end of the last attempt, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("minimum" = millis(*Limits::TOTAL_BUDGET.start()), "maximum" = millis(*Limits::TOTAL_BUDGET.end()))))]
    pub total_budget_ms: Option<u64>,
    /// The time that one attempt may take, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("minimum" = millis(*Limits::ATTEMPT_TIMEOUT.start()), "maximum" = millis(*Limits::ATTEMPT_TIMEOUT.end()))))]
    pub attempt_timeout_ms: Option<u64>,
    /// The time that an attempt may take to connect, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("minimum" = millis(*Limits::CONNECT_TIMEOUT.start()), "maximum" = millis(*Limits::CONNECT_TIMEOUT.end()))))]
    pub connect_timeout_ms: Option<u64>,
    /// The status codes that are retried, instead of the standard's table.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("items" = schemars::json_schema!({ "type": "integer", "minimum": *Limits::RETRYABLE_STATUS.start(), "maximum": *Limits::RETRYABLE_STATUS.end() }))))]
    pub retryable_status_codes: Option<BTreeSet<u16>>,
    /// The longest Retry-After that is waited for, in milliseconds; a longer one ends the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("minimum" = millis(*Limits::RETRY_AFTER_MAX.start()), "maximum" = millis(*Limits::RETRY_AFTER_MAX.end()))))]
    pub retry_after_max_ms: Option<u64>,
    /// Whether a dependency that seems to be gone for good is paused until you resume it: it answered 410 Gone, or no
    /// attempt has succeeded for 24 hours. Otherwise only an event says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_on_gone: Option<bool>,
    /// The approval of a number of retries that the standard does not allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
}

/// How the wait before a retry grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum BackoffKind {
    /// The wait grows by a factor each time.
    Exponential,
    /// The wait grows by the initial delay each time.
    Linear,
    /// The wait is the same each time.
    Fixed,
    /// The waits are those of `scheduleMs`.
    Schedule,
}

/// How a wait is spread out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum JitterKind {
    /// A uniform draw between zero and the wait.
    Full,
    /// Half of the wait, and a uniform draw of the other half.
    Equal,
    /// A uniform draw between the initial delay and three times the previous wait.
    Decorrelated,
    /// The wait, plus or minus `jitterRatio` of it.
    Proportional,
    /// No jitter: exactly the wait.
    None,
}

impl Spec {
    /// This spec with its fields replaced by those that `changes` gives.
    #[must_use]
    pub fn overridden_by(&self, changes: &Spec) -> Spec {
        let (base, changes) = (self.clone(), changes.clone());
        // A schedule that the base's context gave a meaning to is not a mistake in a context without one.
        let is_left_over =
            base.backoff.is_none() && changes.context.is_some_and(|context| context.schedule_ms().is_none());
        let base_schedule = base.schedule_ms.filter(|_| !is_left_over);
        Spec {
            context: changes.context.or(base.context),
            max_attempts: changes.max_attempts.or(base.max_attempts),
            backoff: changes.backoff.or(base.backoff),
            jitter_type: changes.jitter_type.or(base.jitter_type),
            jitter_ratio: changes.jitter_ratio.or(base.jitter_ratio),
            initial_delay_ms: changes.initial_delay_ms.or(base.initial_delay_ms),
            multiplier: changes.multiplier.or(base.multiplier),
            max_delay_ms: changes.max_delay_ms.or(base.max_delay_ms),
            schedule_ms: changes.schedule_ms.or(base_schedule),
            total_budget_ms: changes.total_budget_ms.or(base.total_budget_ms),
            attempt_timeout_ms: changes.attempt_timeout_ms.or(base.attempt_timeout_ms),
            connect_timeout_ms: changes.connect_timeout_ms.or(base.connect_timeout_ms),
            retryable_status_codes: changes.retryable_status_codes.or(base.retryable_status_codes),
            retry_after_max_ms: changes.retry_after_max_ms.or(base.retry_after_max_ms),
            pause_on_gone: changes.pause_on_gone.or(base.pause_on_gone),
            approval: changes.approval.or(base.approval),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn approval(by: &str) -> Option<Approval> {
        Some(Approval { by: by.into(), until: "2027-01-31".parse().unwrap(), max_attempts: 9, reason: None })
    }

    /// All fields, spelled out: a new one does not compile here until these tests know it.
    fn complete() -> Spec {
        Spec {
            context: Some(Context::Webhook),
            max_attempts: Some(3),
            backoff: Some(BackoffKind::Linear),
            jitter_type: Some(JitterKind::Equal),
            jitter_ratio: Some(0.3),
            initial_delay_ms: Some(5),
            multiplier: Some(1.5),
            max_delay_ms: Some(6),
            schedule_ms: Some(vec![7, 8]),
            total_budget_ms: Some(9),
            attempt_timeout_ms: Some(10),
            connect_timeout_ms: Some(11),
            retryable_status_codes: Some([429, 503].into()),
            retry_after_max_ms: Some(12),
            pause_on_gone: Some(true),
            approval: approval("a"),
        }
    }

    /// All fields with other values.
    fn other() -> Spec {
        Spec {
            context: Some(Context::Sync),
            max_attempts: Some(103),
            backoff: Some(BackoffKind::Fixed),
            jitter_type: Some(JitterKind::None),
            jitter_ratio: Some(0.4),
            initial_delay_ms: Some(105),
            multiplier: Some(2.5),
            max_delay_ms: Some(106),
            schedule_ms: Some(vec![]),
            total_budget_ms: Some(109),
            attempt_timeout_ms: Some(110),
            connect_timeout_ms: Some(111),
            retryable_status_codes: Some([].into()),
            retry_after_max_ms: Some(112),
            pause_on_gone: Some(false),
            approval: approval("b"),
        }
    }

    fn fields(spec: &Spec) -> serde_json::Map<String, Value> {
        match serde_json::to_value(spec).unwrap() {
            Value::Object(fields) => fields,
            value => panic!("{value} is no object"),
        }
    }

    #[test]
    fn a_spec_has_the_data_models_names_on_the_wire() {
        let expected = json!({
            "context": "webhook",
            "maxAttempts": 3,
            "backoff": "linear",
            "jitterType": "EQUAL",
            "jitterRatio": 0.3,
            "initialDelayMs": 5,
            "multiplier": 1.5,
            "maxDelayMs": 6,
            "scheduleMs": [7, 8],
            "totalBudgetMs": 9,
            "attemptTimeoutMs": 10,
            "connectTimeoutMs": 11,
            "retryableStatusCodes": [429, 503],
            "retryAfterMaxMs": 12,
            "pauseOnGone": true,
            "approval": { "by": "a", "until": "2027-01-31", "maxAttempts": 9 },
        });
        assert_eq!(serde_json::to_value(complete()).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Spec>(expected).unwrap(), complete());
    }

    #[test]
    fn fields_left_out_stay_left_out() {
        assert_eq!(serde_json::to_string(&Spec::default()).unwrap(), "{}");
        assert_eq!(serde_json::from_str::<Spec>("{}").unwrap(), Spec::default());
        assert_eq!(serde_json::from_str::<Spec>(r#"{ "maxAttempts": null }"#).unwrap(), Spec::default());
    }

    #[test]
    fn every_kind_has_its_name() {
        let backoffs = [
            (BackoffKind::Exponential, "exponential"),
            (BackoffKind::Linear, "linear"),
            (BackoffKind::Fixed, "fixed"),
            (BackoffKind::Schedule, "schedule"),
        ];
        for (kind, name) in backoffs {
            assert_eq!(serde_json::to_value(kind).unwrap(), json!(name));
            assert_eq!(serde_json::from_value::<BackoffKind>(json!(name)).unwrap(), kind);
        }
        let jitters = [
            (JitterKind::Full, "FULL"),
            (JitterKind::Equal, "EQUAL"),
            (JitterKind::Decorrelated, "DECORRELATED"),
            (JitterKind::Proportional, "PROPORTIONAL"),
            (JitterKind::None, "NONE"),
        ];
        for (kind, name) in jitters {
            assert_eq!(serde_json::to_value(kind).unwrap(), json!(name));
            assert_eq!(serde_json::from_value::<JitterKind>(json!(name)).unwrap(), kind);
        }
    }

    #[test]
    fn two_fields_are_known_by_a_second_name() {
        let spec: Spec = serde_json::from_str(r#"{ "backoffType": "fixed", "jitter": "FULL" }"#).unwrap();
        assert_eq!(spec.backoff, Some(BackoffKind::Fixed));
        assert_eq!(spec.jitter_type, Some(JitterKind::Full));
        assert!(serde_json::from_str::<Spec>(r#"{ "backoff": "fixed", "backoffType": "linear" }"#).is_err());
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for json in [
            r#"{ "maxRetries": 3 }"#,
            r#"{ "max_attempts": 3 }"#,
            r#"{ "backoff": "Exponential" }"#,
            r#"{ "jitterType": "full" }"#,
            r#"{ "maxAttempts": -1 }"#,
            r#"{ "maxAttempts": 1.5 }"#,
            r#"{ "initialDelayMs": "1s" }"#,
            r#"{ "retryableStatusCodes": [70000] }"#,
            r#"{ "context": "Sync" }"#,
            r#"{ "approval": { "by": "a" } }"#,
            r#"{ "approval": { "by": "a", "until": "2027-02-28" } }"#,
            r#"{ "approval": { "by": "a", "until": "2027-02-30", "maxAttempts": 9 } }"#,
            r#"{ "approval": { "by": "a", "until": "2027-02-28", "maxAttempts": 9, "for": "ever" } }"#,
        ] {
            assert!(serde_json::from_str::<Spec>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn an_override_changes_the_fields_that_it_gives_and_no_others() {
        let (base, changes) = (complete(), other());
        assert_eq!(base.overridden_by(&Spec::default()), base);
        assert_eq!(Spec::default().overridden_by(&changes), changes);
        assert_eq!(base.overridden_by(&changes), changes);

        let all_changes = fields(&changes);
        assert_eq!(all_changes.len(), fields(&base).len());
        for (name, value) in all_changes {
            let change: Spec = serde_json::from_value(json!({ name.as_str(): value.clone() })).unwrap();
            let mut expected = fields(&base);
            assert_ne!(expected.insert(name.clone(), value.clone()), Some(value), "{name} does not differ");
            assert_eq!(fields(&base.overridden_by(&change)), expected, "{name}");
        }
    }
}
