//! Checks a service: each of its dependencies by the rules for calls, and the service itself by the others.

use redrive_core::date::Date;
use redrive_core::policy::{Context, Policy, Spec};

use super::authentication::authentication;
use super::budget::budget;
use super::classification::classification;
use super::dead_letters::dead_letters;
use super::declared::{Dependency, PolicyChoice, Service};
use super::finding::{Finding, Step};
use super::idempotency::{consumer, keys};
use super::observability::observability;
use super::policy::check_policy;

/// The policies that a service may name: the spec of the one with this name, if there is one.
pub type NamedPolicies<'a> = &'a dyn Fn(&str) -> Option<Spec>;

/// The findings of a service. A policy name that `policies` does not know is checked as the preset of the context; the
/// caller reports the unknown name.
pub fn check_service(service: &Service, policies: NamedPolicies<'_>, today: Date) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, dependency) in service.dependencies.iter().enumerate() {
        let outer = [Step::Field("dependencies"), Step::Index(at)];
        let judged = Call::new(dependency, service.context, policies);
        findings.extend(judged.findings(today).into_iter().map(|finding| finding.within(&outer)));
    }
    findings.extend(consumer(service));
    findings.extend(observability(service));
    findings
}

/// The calls of one dependency, with what they are retried by.
pub(super) struct Call<'a> {
    pub(super) dependency: &'a Dependency,
    pub(super) context: Context,
    pub(super) spec: Spec,
    pub(super) policy: Policy,
}

impl<'a> Call<'a> {
    fn new(dependency: &'a Dependency, of_service: Context, policies: NamedPolicies<'_>) -> Self {
        let context = dependency.context.unwrap_or(of_service);
        let preset = || Spec { context: Some(context), ..Spec::default() };
        let spec = match &dependency.policy {
            None => preset(),
            Some(PolicyChoice::Named(name)) => policies(name).unwrap_or_else(preset),
            Some(PolicyChoice::Inline(spec)) => Spec { context: spec.context.or(Some(context)), ..(**spec).clone() },
        };
        let (policy, _) = Policy::resolve_as_far_as_possible(&spec);
        Call { dependency, context, spec, policy }
    }

    fn findings(&self, today: Date) -> Vec<Finding> {
        let mut findings = self.own_policy(today);
        findings.extend(classification(self));
        findings.extend(keys(self));
        findings.extend(budget(self));
        findings.extend(dead_letters(self));
        findings.extend(authentication(self));
        findings
    }

    /// Whether there is any retry to speak of.
    pub(super) fn is_retried(&self) -> bool {
        self.policy.max_attempts > 1
    }

    /// What the policy breaks where it is used. A policy with a name is judged by itself as well, so what it breaks
    /// wherever it is used is said once, over there.
    fn own_policy(&self, today: Date) -> Vec<Finding> {
        let here = check_policy(&self.spec, Some(self.context), today);
        match &self.dependency.policy {
            None => here,
            Some(PolicyChoice::Inline(_)) => {
                here.into_iter().map(|finding| finding.within(&[Step::Field("policy")])).collect()
            }
            Some(PolicyChoice::Named(name)) => {
                let anyway = check_policy(&self.spec, None, today);
                let only_here = here.into_iter().filter(|finding| !is_among(&anyway, finding));
                only_here.map(|finding| named(name, self.context, finding)).collect()
            }
        }
    }
}

/// Whether just this has been found. The same check by other limits is another matter: what is allowed, or approved,
/// for events may be too much for a caller who waits.
fn is_among(findings: &[Finding], this: &Finding) -> bool {
    findings.iter().any(|finding| finding.check == this.check && finding.wrong == this.wrong)
}

/// A finding of a policy that stands elsewhere, told where it is used. Changing the policy may be wrong for others.
fn named(name: &str, context: Context, finding: Finding) -> Finding {
    let wrong = format!("policy {name}: {}", finding.wrong);
    let fix = format!("use a policy that is for {}, such as the preset {context}", context.meaning());
    Finding { at: vec![Step::Field("policy")], wrong, fix, ..finding }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const TODAY: &str = "2026-11-16";

    /// The checks that a service with one dependency fails, each with where. `rest` are the fields of the dependency.
    pub(in crate::rules) fn found(context: &str, rest: &str) -> Vec<(&'static str, String)> {
        found_in(&format!(
            r#"{{ "name": "shop", "context": "{context}", "dedupe": {{ "retention": "7d" }},
                 "dependencies": [{{ "name": "billing", {rest} }}] }}"#
        ))
    }

    pub(in crate::rules) fn found_in(json: &str) -> Vec<(&'static str, String)> {
        let declared: Service = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
        let policies = |name: &str| {
            match name {
            "hooks" => Some(Spec { context: Some(Context::Webhook), ..Spec::default() }),
            "naive" => serde_json::from_str(r#"{ "backoff": "fixed" }"#).ok(),
            "approved" => serde_json::from_str(
                r#"{ "context": "event", "maxAttempts": 14, "totalBudgetMs": 30000, "maxDelayMs": 2000, "attemptTimeoutMs": 2000,
                     "approval": { "by": "IAB", "until": "2027-01-31", "maxAttempts": 14 } }"#,
            )
            .ok(),
            _ => None,
        }
        };
        let findings = check_service(&declared, &policies, TODAY.parse().unwrap());
        findings.iter().map(|finding| (finding.check.id, finding.path())).collect()
    }

    /// What every dependency needs.
    pub(in crate::rules) const BUDGET: &str = r#""retryBudget": { "ratio": 0.2, "opensBreaker": true }"#;
    /// What every dependency of an asynchronous context needs besides.
    pub(in crate::rules) const DEAD_LETTERS: &str = r#""deadLetterQueue": { "name": "dead", "alert": true }"#;

    fn here(at: &str) -> String {
        format!("dependencies[0].{at}")
    }

    #[test]
    fn what_is_complete_has_no_findings() {
        assert_eq!(found("sync", BUDGET), []);
        assert_eq!(found("batch", BUDGET), []);
        for context in ["event", "webhook", "webhook-patient"] {
            assert_eq!(found(context, &format!("{BUDGET}, {DEAD_LETTERS}")), [], "{context}");
        }
    }

    #[test]
    fn an_inline_policy_is_judged_by_the_context_and_inherits_from_it() {
        assert_eq!(found("sync", &format!(r#"{BUDGET}, "policy": {{ "maxAttempts": 3 }}"#)), []);
        assert_eq!(
            found("sync", &format!(r#"{BUDGET}, "policy": {{ "maxAttempts": 9, "initialDelayMs": 50 }}"#)),
            [("retries-out-of-range", here("policy.maxAttempts"))]
        );
    }

    #[test]
    fn a_named_policy_is_judged_where_it_is_used() {
        assert_eq!(found("webhook", &format!(r#"{BUDGET}, {DEAD_LETTERS}, "policy": "hooks""#)), []);
        let found_here = found("sync", &format!(r#"{BUDGET}, "policy": "hooks""#));
        assert_eq!(found_here, [("schedule-outside-webhooks", here("policy")), ("duration-over-cap", here("policy"))]);
    }

    #[test]
    fn what_a_named_policy_breaks_anyway_is_not_said_again() {
        assert_eq!(found("batch", &format!(r#"{BUDGET}, "policy": "naive""#)), []);
    }

    #[test]
    fn an_approval_for_events_is_none_for_calls_that_are_waited_for() {
        let approved = r#""policy": "approved""#;
        assert_eq!(found("event", &format!("{BUDGET}, {DEAD_LETTERS}, {approved}")), []);
        assert_eq!(found("sync", &format!("{BUDGET}, {approved}")), [("retries-out-of-range", here("policy"))]);
    }

    #[test]
    fn a_word_that_is_not_known_is_refused() {
        for rest in [
            r#""methods": ["ANY"]"#,
            r#""methods": ["POST /v1/payments"]"#,
            r#""whenExhausted": "banana""#,
            r#""retryOn": ["sometimes"]"#,
            r#""retryBudget": { "ratio": 0.2, "whenSpent": "shrug" }"#,
            r#""retryBudget": { "ratio": 0.2, "per": "moon" }"#,
            r#""idempotency": { "key": "uuid-v4", "per": "moon" }"#,
            r#""authentication": { "whenExpired": "shrug" }"#,
            r#""deadLetterQueue": { "name": "dead", "keeps": ["everything"] }"#,
        ] {
            let json =
                format!(r#"{{ "name": "shop", "context": "sync", "dependencies": [{{ "name": "a", {rest} }}] }}"#);
            let error = serde_json::from_str::<Service>(&json).unwrap_err().to_string();
            assert!(error.starts_with("unknown variant"), "{error}");
        }
    }

    #[test]
    fn a_dependency_may_have_a_context_of_its_own() {
        let rest = format!(r#"{BUDGET}, "context": "webhook""#);
        assert_eq!(found("sync", &rest), [("missing-dead-letter-queue", here("deadLetterQueue"))]);
    }
}
