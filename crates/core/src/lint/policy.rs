//! Judges a policy: how it backs off (R-1), how often (R-2), for how long (R-3) and what it retries (R-4).

use std::time::Duration;

use super::check::{
    ATTEMPT_TIMEOUT, Check, DURATION_OVER_CAP, EQUAL_JITTER, FIXED_INTERVAL, LEAVES_OUT_RETRYABLE, LINEAR_BACKOFF,
    LITTLE_JITTER, MISSING_JITTER, PROPORTIONAL_JITTER, RETRIES_NON_RETRYABLE, RETRIES_OUT_OF_RANGE,
    SCHEDULE_ELSEWHERE, SCHEDULE_NOT_INCREASING, UNLISTED_STATUS,
};
use super::finding::{Finding, Permission, Step};
use crate::backoff::Backoff;
use crate::classify::{NON_RETRYABLE_STATUS, RETRYABLE_STATUS};
use crate::date::Date;
use crate::duration::duration_text;
use crate::jitter::Jitter;
use crate::policy::{Context, Policy, Spec};

/// Less than this of a wait spreads nothing.
const LEAST_JITTER_RATIO: f64 = 0.1;

/// What of the standard a policy breaks, judged by `context`, or else by its own, or else as an event's: that is what a
/// durable task without further words is.
///
/// The spec need not be valid: what cannot run is judged by what it says, as far as that goes.
pub fn policy(spec: &Spec, context: Option<Context>, today: Date) -> Vec<Finding> {
    let (policy, _) = Policy::resolve_as_far_as_possible(spec);
    let judged = Judged { spec, policy, context: context.or(spec.context).unwrap_or(Context::Event) };
    let mut findings = Vec::new();
    findings.extend(judged.growth());
    findings.extend(judged.spread());
    findings.extend(judged.schedule());
    findings.extend(judged.retries(today));
    findings.extend(judged.duration());
    findings.extend(judged.attempt_timeout());
    judged.status_codes(&mut findings);
    findings
}

/// A policy and what it is judged by.
struct Judged<'a> {
    spec: &'a Spec,
    policy: Policy,
    context: Context,
}

const BACKOFF: &str = "backoff";
const JITTER: &str = "jitterType";
const SCHEDULE: &str = "scheduleMs";
const CODES: &str = "retryableStatusCodes";

fn finding(check: &'static Check, field: &'static str, wrong: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding::new(check, [Step::Field(field)], wrong, fix)
}

impl Judged<'_> {
    /// How many retries it makes, as it says: also a number that no policy may have.
    fn retry_count(&self) -> u32 {
        self.spec.max_attempts.unwrap_or(self.policy.max_attempts).saturating_sub(1)
    }

    /// R-1: exponential, not fixed, not linear.
    fn growth(&self) -> Option<Finding> {
        const FIX: &str = "leave backoff out, or use \"exponential\" with a multiplier of 2";
        let ceiling = |retry| self.policy.backoff.ceiling(retry);
        let never_grows =
            self.policy.max_attempts > 2 && (1..self.policy.max_attempts).all(|retry| ceiling(retry) == ceiling(1));
        let always = duration_text(ceiling(1));
        match &self.policy.backoff {
            Backoff::Fixed { .. } => {
                Some(finding(&FIXED_INTERVAL, BACKOFF, format!("every retry waits for the same {always}"), FIX))
            }
            Backoff::Linear { .. } => {
                Some(finding(&LINEAR_BACKOFF, BACKOFF, "the wait grows by addition instead of doubling", FIX))
            }
            Backoff::Exponential { multiplier, .. } if never_grows && *multiplier <= 1.0 => {
                let wrong = format!("a multiplier of 1 makes every retry wait for the same {always}");
                Some(finding(&FIXED_INTERVAL, "multiplier", wrong, "use a multiplier of 2, or leave it out"))
            }
            Backoff::Exponential { .. } if never_grows => {
                let wrong = format!("the longest wait is the first one, so every retry waits for the same {always}");
                let fix = format!("let maxDelayMs be larger than initialDelayMs, such as {}", longer(ceiling(1)));
                Some(finding(&FIXED_INTERVAL, "maxDelayMs", wrong, fix))
            }
            Backoff::Schedule { .. } if never_grows => {
                let wrong = format!("every entry of the schedule is the same {always}");
                Some(finding(&FIXED_INTERVAL, SCHEDULE, wrong, "let each wait be longer than the one before"))
            }
            Backoff::Exponential { .. } | Backoff::Schedule { .. } => None,
        }
    }

    /// R-1: full jitter, or decorrelated; what a webhook's schedule promises is spread by a part of itself.
    fn spread(&self) -> Option<Finding> {
        const FIX: &str = "leave jitterType out, or use FULL (or DECORRELATED)";
        let is_schedule = matches!(self.policy.backoff, Backoff::Schedule { .. });
        match self.policy.jitter {
            Jitter::Full | Jitter::Decorrelated => None,
            Jitter::None if is_schedule => {
                let fix = "leave jitterType out for PROPORTIONAL jitter of a fifth, or use FULL";
                Some(finding(&MISSING_JITTER, JITTER, "the waits of the schedule have no jitter", fix))
            }
            Jitter::None => Some(finding(&MISSING_JITTER, JITTER, "the waits have no jitter", FIX)),
            Jitter::Equal => {
                Some(finding(&EQUAL_JITTER, JITTER, "EQUAL jitter leaves half of every wait the same for all", FIX))
            }
            Jitter::Proportional { ratio } if is_schedule && ratio < LEAST_JITTER_RATIO => {
                let wrong = format!("a jitterRatio of {ratio} hardly spreads the schedule");
                Some(finding(&LITTLE_JITTER, "jitterRatio", wrong, "use a jitterRatio of 0.2, or leave it out"))
            }
            Jitter::Proportional { .. } if is_schedule => None,
            Jitter::Proportional { ratio } => {
                let wrong = format!("PROPORTIONAL jitter moves every wait by no more than {ratio} of itself");
                Some(finding(&PROPORTIONAL_JITTER, JITTER, wrong, FIX))
            }
        }
    }

    /// R-1 and R-3: a schedule is for webhooks, and its waits grow.
    fn schedule(&self) -> Vec<Finding> {
        let Backoff::Schedule { delays } = &self.policy.backoff else { return Vec::new() };
        let mut findings = Vec::new();
        if !self.context.is_webhook() {
            let wrong = format!("a schedule is for webhooks, and this is for {}", self.context.meaning());
            findings.push(finding(
                &SCHEDULE_ELSEWHERE,
                BACKOFF,
                wrong,
                "use \"exponential\", or the context \"webhook\"",
            ));
        } else if let Some(at) = delays.windows(2).position(|pair| pair[1] <= pair[0]) {
            let (before, after) = (duration_text(delays[at]), duration_text(delays[at + 1]));
            let wrong =
                format!("the wait of {after} before retry {} is not longer than the {before} before it", at + 2);
            // All the same is a fixed interval, which is worse and is said above.
            if delays.iter().any(|delay| *delay != delays[0]) {
                let fix = "let each wait be longer than the one before";
                let at = [Step::Field(SCHEDULE), Step::Index(at + 1)];
                findings.push(Finding::new(&SCHEDULE_NOT_INCREASING, at, wrong, fix));
            }
        }
        findings
    }

    /// R-2.
    fn retries(&self, today: Date) -> Option<Finding> {
        let (retries, allowed) = (self.retry_count(), self.context.allowed_retries());
        if allowed.contains(&retries) {
            return None;
        }
        let (least, most) = (allowed.start(), allowed.end());
        let side = if retries > *most { "above" } else { "below" };
        let attempts = u64::from(retries) + 1;
        let what = if retries == 1 { "1 retry is".to_owned() } else { format!("{retries} retries are") };
        let wrong = format!(
            "{what} {side} the {least} to {most} that are allowed for {} (maxAttempts counts the first send: {attempts})",
            self.context.meaning(),
        );
        let fix = format!(
            "let maxAttempts be {} to {}, or record an approval: approval = {{ by = \"…\", until = \"2027-01-31\" }}",
            least + 1,
            most + 1
        );
        let permission = self.spec.approval.as_ref().map(|approval| {
            let (by, until) = (approval.by.clone(), approval.until);
            match approval.holds_on(today) {
                true => Permission::Granted { by, until },
                false => Permission::Expired { by, until },
            }
        });
        Some(Finding { permission, ..finding(&RETRIES_OUT_OF_RANGE, "maxAttempts", wrong, fix) })
    }

    /// R-3.
    fn duration(&self) -> Option<Finding> {
        let total = self.spec.total_budget_ms.map_or(self.policy.total_budget, Duration::from_millis);
        let cap = self.context.duration_cap();
        if total <= cap {
            return None;
        }
        let (total, most, meaning) = (duration_text(total), duration_text(cap), self.context.meaning());
        let wrong = format!("{total} are more than the {most} that are allowed for {meaning}");
        let fix = format!("let totalBudgetMs be at most {}", cap.as_millis());
        Some(finding(&DURATION_OVER_CAP, "totalBudgetMs", wrong, fix))
    }

    /// R-3: the time is a cap on the loop, which one attempt must not fill.
    fn attempt_timeout(&self) -> Option<Finding> {
        let total = self.spec.total_budget_ms.map_or(self.policy.total_budget, Duration::from_millis);
        let attempt = self.spec.attempt_timeout_ms.map_or(self.policy.attempt_timeout, Duration::from_millis);
        if attempt < total || self.retry_count() == 0 {
            return None;
        }
        let by_default = if self.spec.attempt_timeout_ms.is_none() { " by default" } else { "" };
        let (attempt, text) = (duration_text(attempt), duration_text(total));
        let wrong = format!("one attempt may take {attempt}{by_default}, and all attempts together {text}");
        let share = total / (self.policy.max_attempts + 1);
        let fix = format!("let attemptTimeoutMs be smaller than totalBudgetMs, such as {}", share.as_millis().max(1));
        Some(finding(&ATTEMPT_TIMEOUT, "attemptTimeoutMs", wrong, fix))
    }

    /// R-4.
    fn status_codes(&self, findings: &mut Vec<Finding>) {
        let Some(codes) = &self.spec.retryable_status_codes else { return };
        for code in codes {
            if let Some(finding) = status(*code) {
                findings.push(finding.within(&[Step::Field(CODES)]));
            }
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

/// What is wrong with retrying a status code.
pub(super) fn status(code: u16) -> Option<Finding> {
    let at = [Step::Item(code.to_string())];
    if NON_RETRYABLE_STATUS.contains(&code) {
        let wrong = format!("{code} is retried, and the standard says never");
        return Some(Finding::new(&RETRIES_NON_RETRYABLE, at, wrong, format!("remove {code} from the list")));
    }
    if (300..500).contains(&code) && !RETRYABLE_STATUS.contains(&code) {
        let wrong = format!("{code} is retried, and the standard does not name it");
        return Some(Finding::new(&UNLISTED_STATUS, at, wrong, format!("remove {code} from the list")));
    }
    None
}

/// A longest wait that lets this first one grow.
fn longer(first: Duration) -> u128 {
    first.saturating_mul(30).as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: &str = "2026-11-16";

    /// The checks that a policy fails, each with where.
    fn found_in(json: &str, context: Option<Context>) -> Vec<(&'static str, String)> {
        let spec: Spec = serde_json::from_str(json).unwrap();
        let findings = policy(&spec, context, TODAY.parse().unwrap());
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
    fn each_deviation_is_found_where_it_is() {
        for (json, check, at) in [
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
            (r#"{ "maxAttempts": 1 }"#, "retries-out-of-range", "maxAttempts"),
            (r#"{ "context": "webhook", "maxAttempts": 3 }"#, "retries-out-of-range", "maxAttempts"),
            (r#"{ "context": "sync", "maxAttempts": 7 }"#, "retries-out-of-range", "maxAttempts"),
            (r#"{ "totalBudgetMs": 86400001 }"#, "duration-over-cap", "totalBudgetMs"),
            (r#"{ "context": "sync", "totalBudgetMs": 30001 }"#, "duration-over-cap", "totalBudgetMs"),
            (r#"{ "totalBudgetMs": 20000 }"#, "attempt-timeout-too-long", "attemptTimeoutMs"),
            (
                r#"{ "totalBudgetMs": 20000, "attemptTimeoutMs": 20000 }"#,
                "attempt-timeout-too-long",
                "attemptTimeoutMs",
            ),
            (
                r#"{ "retryableStatusCodes": [408, 429, 500, 502, 503, 504, 409] }"#,
                "retries-non-retryable",
                "retryableStatusCodes[409]",
            ),
            (
                r#"{ "retryableStatusCodes": [408, 429, 500, 502, 503] }"#,
                "leaves-out-retryable",
                "retryableStatusCodes",
            ),
            (
                r#"{ "retryableStatusCodes": [301, 408, 429, 500, 502, 503, 504, 599] }"#,
                "unlisted-status",
                "retryableStatusCodes[301]",
            ),
        ] {
            assert_eq!(found(json), [(check, at.to_owned())], "{json}");
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
            r#"{ "retryableStatusCodes": [408, 429, 500, 501, 502, 503, 504, 599] }"#,
        ] {
            assert_eq!(found(json), [], "{json}");
        }
    }

    #[test]
    fn what_no_policy_may_have_is_judged_as_it_is_written() {
        assert_eq!(found(r#"{ "maxAttempts": 500 }"#), [("retries-out-of-range", "maxAttempts".into())]);
        assert_eq!(found(r#"{ "totalBudgetMs": 9000000000000 }"#), [("duration-over-cap", "totalBudgetMs".into())]);
        let json = r#"{ "totalBudgetMs": 5000, "attemptTimeoutMs": 6000 }"#;
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
            let json = format!(r#"{{ "maxAttempts": 20, "approval": {{ "by": "IAB", "until": "{until}" }} }}"#);
            let findings = policy(&serde_json::from_str(&json).unwrap(), None, TODAY.parse().unwrap());
            (findings[0].breaks_a_must(), findings[0].permission.clone())
        };
        let (by, day) = ("IAB".to_owned(), |text: &str| text.parse::<Date>().unwrap());
        assert_eq!(permission(TODAY), (false, Some(Permission::Granted { by: by.clone(), until: day(TODAY) })));
        assert_eq!(permission("2026-11-15"), (true, Some(Permission::Expired { by, until: day("2026-11-15") })));
    }

    #[test]
    fn an_approval_permits_nothing_but_the_number_of_retries() {
        let json = r#"{ "backoff": "fixed", "approval": { "by": "IAB", "until": "2027-01-31" } }"#;
        let findings = policy(&serde_json::from_str(json).unwrap(), None, TODAY.parse().unwrap());
        assert!(findings.iter().all(Finding::breaks_a_must));
        assert_eq!(findings.len(), 1);
    }
}
