//! Built-in policies: the presets, each under the name of its context.
//!
//! A server registers them when it starts, so that tasks can name them without further ado. They are stored like any
//! other policy, and tasks pin their version. What a stored policy leaves out is filled in when it is used, by whichever
//! program uses it: so the defaults of a context must never change (see the tests). A better preset is a new context,
//! or a field that names its revision.

use super::{Context, Spec};

/// The built-in policy with this name. A policy of this name with other fields is not built in.
pub fn built_in(name: &str) -> Option<Spec> {
    Context::from_name(name).map(|context| Spec { context: Some(context), ..Spec::default() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::policy::Policy;

    #[test]
    fn every_context_is_a_built_in_policy() {
        for context in Context::ALL {
            assert_eq!(built_in(context.as_str()).unwrap().context, Some(context));
        }
        assert_eq!(built_in("default"), None);
        assert_eq!(built_in("webhooks"), None);
    }

    /// If this fails, accepted tasks would be retried differently after an upgrade.
    #[test]
    fn the_defaults_of_a_context_never_change() {
        let exponential = json!({
            "backoff": "exponential", "jitterType": "FULL", "initialDelayMs": 1000, "multiplier": 2.0,
            "maxDelayMs": 30000,
        });
        let schedule = |delays: Value| json!({ "backoff": "schedule", "jitterType": "PROPORTIONAL", "jitterRatio": 0.2, "scheduleMs": delays });
        let waited_for = json!({ "totalBudgetMs": 30000, "attemptTimeoutMs": 5000, "connectTimeoutMs": 2000 });
        let patient = json!({ "totalBudgetMs": 86400000, "attemptTimeoutMs": 30000, "connectTimeoutMs": 5000 });
        let webhook = schedule(json!([1000, 5000, 30000, 120000, 900000]));
        let webhook_patient = schedule(json!([30000, 120000, 600000, 3600000]));
        for (context, max_attempts, parts) in [
            (None, 6, [&exponential, &patient]),
            (Some(Context::Sync), 4, [&exponential, &waited_for]),
            (Some(Context::Event), 6, [&exponential, &patient]),
            (Some(Context::Webhook), 6, [&webhook, &patient]),
            (Some(Context::WebhookPatient), 5, [&webhook_patient, &patient]),
            (Some(Context::Batch), 4, [&exponential, &patient]),
            (Some(Context::Grpc), 4, [&exponential, &waited_for]),
        ] {
            let mut expected = json!({ "maxAttempts": max_attempts });
            if let Some(context) = context {
                expected["context"] = json!(context);
            }
            for part in parts {
                expected.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
            }
            let policy = Policy::resolve(&Spec { context, ..Spec::default() }).unwrap();
            assert_eq!(serde_json::to_value(policy.to_spec()).unwrap(), expected, "{context:?}");
        }
    }
}
