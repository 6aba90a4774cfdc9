//! Checks a policy: how it backs off (R-1, in `backoff`), how often (R-2), for how long (R-3) and what it retries
//! (R-4).

use std::time::Duration;

use redrive_core::classify::RETRYABLE_STATUS;
use redrive_core::date::Date;
use redrive_core::duration::{brief, duration_text};
use redrive_core::policy::{Approval, Context, Policy, Spec};
use redrive_core::timetable;

use super::check::{
    ATTEMPT_TIMEOUT, ATTEMPTS_TOO_LATE, Check, DURATION_OVER_CAP, LEAVES_OUT_RETRYABLE, NEVER_RETRIES,
    RETRIES_OUT_OF_RANGE,
};
use super::classification;
use super::finding::{Finding, Permission, PermissionState, Step};
use super::retry_on::{RetryOn, of_status};

/// The findings of a policy, in the order of the rules. It is checked for `context`, or else for its own context, or
/// else as an event, which is what a durable task is by default.
///
/// The spec need not be valid: an invalid value is checked as it is written, as far as possible.
pub fn check_policy(spec: &Spec, context: Option<Context>, today: Date) -> Vec<Finding> {
    let (policy, _) = Policy::resolve_as_far_as_possible(spec);
    let own = spec.context.unwrap_or(Context::Event);
    let check = PolicyCheck { spec, policy, context: context.unwrap_or(own), own };
    let mut findings = Vec::new();
    if check.retry_count() > 0 {
        let growth = check.growth();
        findings.extend(growth.clone());
        findings.extend(check.spread());
        findings.extend(check.schedule(growth.is_some()));
        findings.extend(check.attempt_timeout());
        findings.extend(check.too_late());
    }
    findings.extend(check.retries(today));
    findings.extend(check.duration());
    check.status_codes(&mut findings);
    findings.sort_by_key(|finding| finding.check.rule);
    findings
}

/// A policy, and the context that it is checked for.
pub(super) struct PolicyCheck<'a> {
    pub(super) spec: &'a Spec,
    pub(super) policy: Policy,
    pub(super) context: Context,
    /// The context that the policy is for by itself.
    own: Context,
}

const CODES: &str = "retryableStatusCodes";
const ATTEMPTS: &str = "maxAttempts";
const TOTAL: &str = "totalBudgetMs";

pub(super) fn finding(
    check: &'static Check,
    field: &'static str,
    wrong: impl Into<String>,
    fix: impl Into<String>,
) -> Finding {
    Finding::new(check, [Step::Field(field)], wrong, fix)
}

impl PolicyCheck<'_> {
    /// How many attempts it makes, as it says: also a number that no policy may have.
    fn attempt_count(&self) -> u32 {
        self.spec.max_attempts.unwrap_or(self.policy.max_attempts)
    }

    pub(super) fn retry_count(&self) -> u32 {
        self.attempt_count().saturating_sub(1)
    }

    fn total(&self) -> Duration {
        self.spec.total_budget_ms.map_or(self.policy.total_budget, Duration::from_millis)
    }

    /// R-2.
    fn retries(&self, today: Date) -> Option<Finding> {
        let (retries, allowed) = (self.retry_count(), self.context.allowed_retries());
        let (least, most, meaning) = (allowed.start(), allowed.end(), self.context.meaning());
        if allowed.contains(&retries) {
            return None;
        }
        let range = format!("let maxAttempts be {} to {}", least + 1, most + 1);
        if retries == 0 {
            let wrong = format!("it makes no retry, and {least} to {most} are allowed for {meaning}");
            return Some(finding(&NEVER_RETRIES, ATTEMPTS, wrong, range));
        }
        let side = if retries > *most { "above" } else { "below" };
        let what = if retries == 1 { "1 retry is".to_owned() } else { format!("{retries} retries are") };
        let wrong = format!(
            "{what} {side} the {least} to {most} that are allowed for {meaning} (maxAttempts counts the first send: {})",
            self.attempt_count(),
        );
        let fix = format!(
            "{range}, or give the policy itself the board's approval: who gave it, until when, for how many attempts"
        );
        let permission = self.permission(today);
        Some(Finding { permission, ..finding(&RETRIES_OUT_OF_RANGE, ATTEMPTS, wrong, fix) })
    }

    /// An approval is for a number of attempts, in the context that the policy is for.
    fn permission(&self, today: Date) -> Option<Permission> {
        let approval = self.spec.approval.as_ref().filter(|_| self.context == self.own)?;
        let state = if self.attempt_count() > approval.max_attempts {
            PermissionState::Exceeded
        } else if approval.holds_on(today) {
            PermissionState::Granted
        } else {
            PermissionState::Expired
        };
        let Approval { by, until, max_attempts, .. } = approval.clone();
        Some(Permission { by, until, max_attempts, state })
    }

    /// R-3.
    fn duration(&self) -> Option<Finding> {
        let cap = self.context.duration_cap();
        if self.total() <= cap {
            return None;
        }
        let (total, most, meaning) = (duration_text(self.total()), duration_text(cap), self.context.meaning());
        let wrong = format!("a total of {total} is more than the {most} that {meaning} may take");
        let fix = format!("let totalBudgetMs be at most {}", cap.as_millis());
        Some(finding(&DURATION_OVER_CAP, TOTAL, wrong, fix))
    }

    /// R-3: the time is a cap on the loop, which one attempt must not fill.
    fn attempt_timeout(&self) -> Option<Finding> {
        let total = self.total();
        let attempt = self.spec.attempt_timeout_ms.map_or(self.policy.attempt_timeout, Duration::from_millis);
        if attempt < total {
            return None;
        }
        let wrong = format!(
            "one attempt may take {}, and all attempts together {}",
            duration_text(attempt),
            duration_text(total)
        );
        let fix = "let attemptTimeoutMs (and connectTimeoutMs) be smaller than totalBudgetMs, or leave it out";
        Some(finding(&ATTEMPT_TIMEOUT, "attemptTimeoutMs", wrong, fix))
    }

    /// R-3: attempts for which there is no time.
    fn too_late(&self) -> Option<Finding> {
        let rows = timetable::of(&self.policy);
        let late = rows.iter().find(|row| row.at.typical >= self.policy.total_budget)?;
        let wrong = format!(
            "attempt {} of {} typically comes after {}, and the time is over after {}",
            late.attempt,
            self.policy.max_attempts,
            brief(late.at.typical),
            brief(self.policy.total_budget)
        );
        let fix = "let the waits be shorter, totalBudgetMs longer, or maxAttempts smaller";
        Some(finding(&ATTEMPTS_TOO_LATE, ATTEMPTS, wrong, fix))
    }

    /// R-4.
    fn status_codes(&self, findings: &mut Vec<Finding>) {
        let Some(codes) = &self.spec.retryable_status_codes else { return };
        for code in codes {
            let retried = RetryOn { written: code.to_string(), requirement: of_status(*code) };
            findings.extend(classification::finding(&retried).map(|finding| finding.within(&[Step::Field(CODES)])));
        }
        let missing: Vec<String> =
            RETRYABLE_STATUS.iter().filter(|code| !codes.contains(code)).map(u16::to_string).collect();
        if !missing.is_empty() && self.retry_count() > 0 {
            let wrong = format!("not retried, though the standard says so: {}", missing.join(", "));
            let fix = format!("add {}, or leave {CODES} out for the standard's table", missing.join(", "));
            findings.push(finding(&LEAVES_OUT_RETRYABLE, CODES, wrong, fix));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: &str = "2026-11-16";

    /// The checks that a policy fails, each with where.
    fn found_in(json: &str, context: Option<Context>) -> Vec<(&'static str, String)> {
        let spec: Spec = serde_json::from_str(json).unwrap();
        let findings = check_policy(&spec, context, TODAY.parse().unwrap());
        findings.iter().map(|finding| (finding.check.id, finding.path())).collect()
    }

    fn found(json: &str) -> Vec<(&'static str, String)> {
        found_in(json, None)
    }

    #[test]
    fn every_preset_and_the_default_keep_the_standard() {
        assert_eq!(found("{}"), []);
        for context in Context::ALL {
            assert_eq!(found(&format!(r#"{{ "context": "{context}" }}"#)), [], "{context}");
        }
    }

    #[test]
    fn each_deviation_of_waits_and_attempts_is_found_where_it_is() {
        each_is_found(&[
            (r#"{ "backoff": "fixed" }"#, "fixed-interval", "backoff"),
            (r#"{ "backoff": "fixed", "maxAttempts": 2 }"#, "fixed-interval", "backoff"),
            (r#"{ "multiplier": 1 }"#, "fixed-interval", "multiplier"),
            (r#"{ "initialDelayMs": 5000, "maxDelayMs": 5000 }"#, "fixed-interval", "maxDelayMs"),
            (r#"{ "context": "webhook", "scheduleMs": [5, 5, 5] }"#, "fixed-interval", "scheduleMs"),
            (r#"{ "backoff": "linear" }"#, "linear-backoff", "backoff"),
            (r#"{ "jitterType": "NONE" }"#, "missing-jitter", "jitterType"),
            (r#"{ "context": "webhook", "jitterType": "NONE" }"#, "missing-jitter", "jitterType"),
            (r#"{ "jitterType": "EQUAL" }"#, "equal-jitter", "jitterType"),
            (r#"{ "jitterType": "PROPORTIONAL", "jitterRatio": 1 }"#, "proportional-jitter", "jitterType"),
            (r#"{ "context": "webhook", "jitterRatio": 0.05 }"#, "little-jitter", "jitterRatio"),
            (r#"{ "backoff": "schedule", "scheduleMs": [1, 2] }"#, "schedule-outside-webhooks", "backoff"),
            (r#"{ "context": "webhook", "scheduleMs": [1, 9, 8, 20] }"#, "schedule-not-increasing", "scheduleMs[2]"),
            (r#"{ "context": "webhook", "scheduleMs": [1, 9, 9, 20] }"#, "schedule-not-increasing", "scheduleMs[2]"),
            (r#"{ "maxAttempts": 12 }"#, "retries-out-of-range", "maxAttempts"),
            (r#"{ "maxAttempts": 1 }"#, "never-retries", "maxAttempts"),
            (r#"{ "maxAttempts": 1, "backoff": "fixed", "jitterType": "NONE" }"#, "never-retries", "maxAttempts"),
            (r#"{ "multiplier": 1.0001 }"#, "fixed-interval", "multiplier"),
            (r#"{ "initialDelayMs": 1000, "maxDelayMs": 1001 }"#, "fixed-interval", "maxDelayMs"),
            (
                r#"{ "jitterType": "DECORRELATED", "initialDelayMs": 5, "maxDelayMs": 5 }"#,
                "fixed-interval",
                "maxDelayMs",
            ),
            (r#"{ "context": "webhook", "scheduleMs": [0, 5000], "maxAttempts": 9 }"#, "fixed-interval", "scheduleMs"),
            (r#"{ "context": "webhook", "scheduleMs": [1000, 1000, 1001] }"#, "fixed-interval", "scheduleMs"),
            (r#"{ "context": "webhook-patient", "maxAttempts": 9 }"#, "fixed-interval", "scheduleMs"),
            (r#"{ "initialDelayMs": 1000, "maxDelayMs": 1999 }"#, "fixed-interval", "maxDelayMs"),
            (
                r#"{ "context": "webhook", "scheduleMs": [1, 5, 25, 125, 625], "maxAttempts": 9 }"#,
                "schedule-not-increasing",
                "scheduleMs",
            ),
            (
                r#"{ "context": "event", "initialDelayMs": 3600000, "maxDelayMs": 86400000, "totalBudgetMs": 3600000 }"#,
                "attempts-too-late",
                "maxAttempts",
            ),
            (r#"{ "context": "webhook", "maxAttempts": 3 }"#, "retries-out-of-range", "maxAttempts"),
            (r#"{ "context": "sync", "maxAttempts": 7, "initialDelayMs": 99 }"#, "retries-out-of-range", "maxAttempts"),
        ]);
    }

    #[test]
    fn each_deviation_of_durations_and_status_codes_is_found_where_it_is() {
        each_is_found(&[
            (r#"{ "totalBudgetMs": 86400001 }"#, "duration-over-cap", "totalBudgetMs"),
            (r#"{ "context": "sync", "totalBudgetMs": 30001 }"#, "duration-over-cap", "totalBudgetMs"),
            (
                r#"{ "totalBudgetMs": 20000, "attemptTimeoutMs": 20000 }"#,
                "attempt-timeout-too-long",
                "attemptTimeoutMs",
            ),
            (
                r#"{ "retryableStatusCodes": [408, 429, 500, 502, 503, 504, 409] }"#,
                "retries-non-retryable",
                "retryableStatusCodes[=409]",
            ),
            (
                r#"{ "retryableStatusCodes": [408, 429, 500, 502, 503] }"#,
                "leaves-out-retryable",
                "retryableStatusCodes",
            ),
            (
                r#"{ "retryableStatusCodes": [301, 408, 429, 500, 502, 503, 504, 599] }"#,
                "unlisted-status",
                "retryableStatusCodes[=301]",
            ),
            (
                r#"{ "retryableStatusCodes": [408, 429, 500, 501, 502, 503, 504] }"#,
                "unlisted-status",
                "retryableStatusCodes[=501]",
            ),
        ]);
    }

    /// Each policy breaks this check at this field, and no other.
    fn each_is_found(cases: &[(&str, &str, &str)]) {
        for (json, check, at) in cases {
            assert_eq!(found(json), [(*check, (*at).to_owned())], "{json}");
        }
    }

    #[test]
    fn what_is_allowed_is_not_found() {
        for json in [
            r#"{ "jitterType": "DECORRELATED" }"#,
            r#"{ "initialDelayMs": 50, "maxDelayMs": 2000, "multiplier": 1.5 }"#,
            r#"{ "context": "webhook", "maxAttempts": 9 }"#,
            r#"{ "context": "webhook", "jitterType": "FULL" }"#,
            r#"{ "context": "event", "maxAttempts": 11 }"#,
            r#"{ "context": "event", "maxAttempts": 2, "initialDelayMs": 5000, "maxDelayMs": 5000 }"#,
            r#"{ "context": "sync", "maxAttempts": 2, "totalBudgetMs": 2000, "attemptTimeoutMs": 1999 }"#,
            r#"{ "retryableStatusCodes": [408, 429, 500, 502, 503, 504, 520, 599] }"#,
            r#"{ "totalBudgetMs": 20000 }"#,
            r#"{ "context": "sync", "totalBudgetMs": 5000 }"#,
            r#"{ "jitterType": "DECORRELATED", "multiplier": 1 }"#,
        ] {
            assert_eq!(found(json), [], "{json}");
        }
    }

    #[test]
    fn what_no_policy_may_have_is_judged_as_it_is_written() {
        assert_eq!(found(r#"{ "maxAttempts": 500 }"#), [("retries-out-of-range", "maxAttempts".into())]);
        assert_eq!(found(r#"{ "totalBudgetMs": 9000000000000 }"#), [("duration-over-cap", "totalBudgetMs".into())]);
        let json = r#"{ "totalBudgetMs": 5000, "attemptTimeoutMs": 6000, "maxAttempts": 3 }"#;
        assert_eq!(found(json), [("attempt-timeout-too-long", "attemptTimeoutMs".into())]);
    }

    #[test]
    fn another_context_may_be_stricter() {
        let spec = r#"{ "context": "event" }"#;
        assert_eq!(found_in(spec, Some(Context::Webhook)), []);
        assert_eq!(found_in(spec, Some(Context::Sync)), [("duration-over-cap", "totalBudgetMs".into())]);
    }

    #[test]
    fn an_approval_holds_until_the_end_of_its_last_day() {
        let permission = |until: &str| {
            let json = format!(
                r#"{{ "maxAttempts": 20, "approval": {{ "by": "IAB", "until": "{until}", "maxAttempts": 20 }} }}"#
            );
            let findings = check_policy(&serde_json::from_str(&json).unwrap(), None, TODAY.parse().unwrap());
            (findings[0].breaks_a_must(), findings[0].permission.as_ref().map(|permission| permission.state))
        };
        assert_eq!(permission(TODAY), (false, Some(PermissionState::Granted)));
        assert_eq!(permission("2026-11-15"), (true, Some(PermissionState::Expired)));
    }

    #[test]
    fn an_approval_permits_nothing_but_the_number_of_retries() {
        let json = r#"{ "backoff": "fixed", "approval": { "by": "IAB", "until": "2027-01-31", "maxAttempts": 99 } }"#;
        let findings = check_policy(&serde_json::from_str(json).unwrap(), None, TODAY.parse().unwrap());
        assert!(findings.iter().all(Finding::breaks_a_must));
        assert_eq!(findings.len(), 1);
    }

    #[test]
    fn an_approval_is_for_so_many_attempts_in_the_policys_own_context() {
        let permission = |attempts: u32, context| {
            let json = format!(
                r#"{{ "context": "event", "totalBudgetMs": 30000, "maxDelayMs": 2000, "maxAttempts": {attempts},
                     "approval": {{ "by": "IAB", "until": "2027-01-31", "maxAttempts": 16 }} }}"#
            );
            let findings = check_policy(&serde_json::from_str(&json).unwrap(), context, TODAY.parse().unwrap());
            let found = findings.iter().find(|finding| finding.check.id == "retries-out-of-range").unwrap();
            (found.breaks_a_must(), found.permission.as_ref().map(|permission| permission.state))
        };
        assert!(!permission(16, None).0);
        assert!(!permission(16, Some(Context::Event)).0);
        assert_eq!(permission(17, None), (true, Some(PermissionState::Exceeded)));
        assert_eq!(permission(16, Some(Context::Sync)), (true, None));
    }

    #[test]
    fn a_schedule_outside_webhooks_blocks_the_merge_and_one_that_is_missing_is_not_judged() {
        let outside =
            r#"{ "context": "sync", "backoff": "schedule", "scheduleMs": [100, 2000, 9000], "jitterRatio": 0.0001 }"#;
        let expected = [("little-jitter", "jitterRatio".into()), ("schedule-outside-webhooks", "backoff".into())];
        assert_eq!(found(outside), expected);
        assert_eq!(
            found(r#"{ "context": "webhook", "backoff": "schedule", "scheduleMs": [] }"#),
            [("never-retries", "maxAttempts".into())]
        );
        let missing = r#"{ "backoff": "schedule" }"#;
        assert_eq!(found(missing), [("schedule-outside-webhooks", "backoff".into())]);
    }

    #[test]
    fn findings_come_in_the_order_of_the_rules() {
        let json =
            r#"{ "maxAttempts": 40, "totalBudgetMs": 172800000, "backoff": "fixed", "retryableStatusCodes": [404] }"#;
        let rules: Vec<_> = check_policy(&serde_json::from_str(json).unwrap(), None, TODAY.parse().unwrap())
            .iter()
            .map(|finding| finding.check.rule.id())
            .collect();
        assert_eq!(rules, ["R-1", "R-2", "R-3", "R-4", "R-4"]);
    }
}
