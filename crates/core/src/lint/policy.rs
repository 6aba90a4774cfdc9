//! Judges a policy: how it backs off (R-1), how often (R-2), for how long (R-3) and what it retries (R-4).

use std::time::Duration;

use super::check::{
    ATTEMPT_TIMEOUT, ATTEMPTS_TOO_LATE, Check, DURATION_OVER_CAP, EQUAL_JITTER, FIXED_INTERVAL, LEAVES_OUT_RETRYABLE,
    LINEAR_BACKOFF, LITTLE_JITTER, MISSING_JITTER, NEVER_RETRIES, PROPORTIONAL_JITTER, RETRIES_OUT_OF_RANGE,
    SCHEDULE_ELSEWHERE, SCHEDULE_NOT_INCREASING,
};
use super::classification;
use super::finding::{Finding, Permission, Step};
use super::retried::{Retried, of_status};
use crate::backoff::Backoff;
use crate::classify::RETRYABLE_STATUS;
use crate::date::Date;
use crate::duration::duration_text;
use crate::jitter::Jitter;
use crate::policy::{Context, Policy, Spec};
use crate::timetable;

/// Less than this of a wait spreads nothing.
const LEAST_JITTER_RATIO: f64 = 0.1;
/// Over three retries and more, a wait that does not grow to this many times the first one hardly grows at all.
const LEAST_GROWTH: f64 = 1.5;
/// Two waits that differ by no more than this part are the same to whoever is waited for.
const SAME_WITHIN: f64 = 0.1;

/// What of the standard a policy breaks, judged by `context`, or else by its own, or else as an event's: that is what a
/// durable task without further words is. The findings come in the order of the rules.
///
/// The spec need not be valid: what cannot run is judged by what it says, as far as that goes.
pub fn policy(spec: &Spec, context: Option<Context>, today: Date) -> Vec<Finding> {
    let (policy, _) = Policy::resolve_as_far_as_possible(spec);
    let own = spec.context.unwrap_or(Context::Event);
    let judged = Judged { spec, policy, context: context.unwrap_or(own), own };
    let mut findings = Vec::new();
    if judged.retry_count() > 0 {
        let growth = judged.growth();
        findings.extend(growth.clone());
        findings.extend(judged.spread());
        findings.extend(judged.schedule(growth.is_some()));
        findings.extend(judged.attempt_timeout());
        findings.extend(judged.too_late());
    }
    findings.extend(judged.retries(today));
    findings.extend(judged.duration());
    judged.status_codes(&mut findings);
    findings.sort_by_key(|finding| finding.check.rule);
    findings
}

/// A policy and what it is judged by.
struct Judged<'a> {
    spec: &'a Spec,
    policy: Policy,
    context: Context,
    /// The context that the policy is for by itself.
    own: Context,
}

const BACKOFF: &str = "backoff";
const JITTER: &str = "jitterType";
const SCHEDULE: &str = "scheduleMs";
const CODES: &str = "retryableStatusCodes";
const ATTEMPTS: &str = "maxAttempts";
const TOTAL: &str = "totalBudgetMs";

fn finding(check: &'static Check, field: &'static str, wrong: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding::new(check, [Step::Field(field)], wrong, fix)
}

impl Judged<'_> {
    /// How many attempts it makes, as it says: also a number that no policy may have.
    fn attempt_count(&self) -> u32 {
        self.spec.max_attempts.unwrap_or(self.policy.max_attempts)
    }

    fn retry_count(&self) -> u32 {
        self.attempt_count().saturating_sub(1)
    }

    fn total(&self) -> Duration {
        self.spec.total_budget_ms.map_or(self.policy.total_budget, Duration::from_millis)
    }

    /// The longest waits before the retries that it makes.
    fn ceilings(&self) -> Vec<Duration> {
        (1..self.policy.max_attempts).map(|retry| self.policy.backoff.ceiling(retry)).collect()
    }

    /// R-1: exponential, not fixed, not linear.
    fn growth(&self) -> Option<Finding> {
        const FIX: &str = "leave backoff out, or use exponential with a multiplier of 2";
        let ceilings = self.ceilings();
        let first = ceilings.first().copied().unwrap_or_default();
        let text = duration_text(first);
        match &self.policy.backoff {
            Backoff::Fixed { .. } => {
                let wrong = format!("every retry has the same {text} to wait");
                Some(finding(&FIXED_INTERVAL, BACKOFF, wrong, FIX))
            }
            Backoff::Linear { .. } => {
                Some(finding(&LINEAR_BACKOFF, BACKOFF, "the wait grows by addition instead of doubling", FIX))
            }
            // Its waits grow by themselves, unless they are not let.
            Backoff::Exponential { initial, max, .. }
                if self.policy.jitter == Jitter::Decorrelated && max > initial =>
            {
                None
            }
            Backoff::Exponential { .. } if !hardly_grow(&ceilings) => None,
            Backoff::Exponential { initial, multiplier, max } => {
                let retries = i32::try_from(ceilings.len()).unwrap_or(i32::MAX);
                if initial.as_secs_f64() * multiplier.powi(retries - 1) < max.as_secs_f64() {
                    let given = self.spec.multiplier.unwrap_or(*multiplier);
                    let wrong = format!("with a multiplier of {given} every retry has about the same {text} to wait");
                    return Some(finding(
                        &FIXED_INTERVAL,
                        "multiplier",
                        wrong,
                        "use a multiplier of 2, or leave it out",
                    ));
                }
                let longest = duration_text(*max);
                let wrong =
                    format!("the wait begins at {text} and ends at {longest}, so it is about the same for every retry");
                let fix =
                    format!("let maxDelayMs be much larger than initialDelayMs, such as {}", 30 * first.as_millis());
                Some(finding(&FIXED_INTERVAL, "maxDelayMs", wrong, fix))
            }
            Backoff::Schedule { delays } if delays.is_empty() || !mostly_stands_still(&ceilings) => None,
            Backoff::Schedule { .. } => {
                let wrong = "most retries have the same time to wait as the one before";
                Some(finding(&FIXED_INTERVAL, SCHEDULE, wrong, "let each wait be longer than the one before"))
            }
        }
    }

    /// R-1: full jitter, or decorrelated; what a webhook's schedule promises is spread by a part of itself.
    fn spread(&self) -> Option<Finding> {
        let is_schedule = matches!(self.policy.backoff, Backoff::Schedule { .. });
        let fix = match self.policy.backoff {
            Backoff::Exponential { .. } => "leave jitterType out, or use FULL (or DECORRELATED)",
            Backoff::Schedule { .. } => "leave jitterType out for PROPORTIONAL jitter of a fifth, or use FULL",
            _ => "leave jitterType out, or use FULL",
        };
        match self.policy.jitter {
            Jitter::Full | Jitter::Decorrelated => None,
            Jitter::None => Some(finding(&MISSING_JITTER, JITTER, "the waits have no jitter", fix)),
            Jitter::Equal => {
                Some(finding(&EQUAL_JITTER, JITTER, "EQUAL jitter leaves half of every wait the same for all", fix))
            }
            Jitter::Proportional { ratio } if is_schedule && ratio < LEAST_JITTER_RATIO => {
                let wrong = format!("a jitterRatio of {ratio} hardly spreads the schedule");
                Some(finding(&LITTLE_JITTER, "jitterRatio", wrong, "use a jitterRatio of 0.2, or leave it out"))
            }
            Jitter::Proportional { .. } if is_schedule => None,
            Jitter::Proportional { ratio } => {
                let wrong = format!("PROPORTIONAL jitter moves a wait by {} % of itself at most", ratio * 100.0);
                Some(finding(&PROPORTIONAL_JITTER, JITTER, wrong, fix))
            }
        }
    }

    /// R-1 and R-3: a schedule is for webhooks, and its waits grow.
    fn schedule(&self, stands_still: bool) -> Option<Finding> {
        let Backoff::Schedule { delays } = &self.policy.backoff else { return None };
        if !self.context.is_webhook() {
            let wrong = format!("a schedule is for webhooks, and this is for {}", self.context.meaning());
            return Some(finding(&SCHEDULE_ELSEWHERE, BACKOFF, wrong, "use exponential, or the context webhook"));
        }
        // That it mostly stands still is worse, and has been said.
        if stands_still || delays.is_empty() {
            return None;
        }
        const FIX: &str = "let each wait be longer than the one before";
        let used = delays.len().min(usize::try_from(self.retry_count()).unwrap_or(usize::MAX));
        if let Some(at) = delays[..used].windows(2).position(|pair| pair[1] <= pair[0]) {
            let (before, after) = (duration_text(delays[at]), duration_text(delays[at + 1]));
            let wrong =
                format!("the wait of {after} before retry {} is not longer than the {before} before it", at + 2);
            let at = [Step::Field(SCHEDULE), Step::Index(at + 1)];
            return Some(Finding::new(&SCHEDULE_NOT_INCREASING, at, wrong, FIX));
        }
        // R-2 allows one retry more than R-3's schedule has entries.
        let repeats = usize::try_from(self.retry_count()).unwrap_or(usize::MAX).saturating_sub(delays.len());
        let last = delays.last().copied().unwrap_or_default();
        (repeats > 1).then(|| {
            let wrong = format!("the last wait, {}, is repeated {repeats} times", duration_text(last));
            finding(&SCHEDULE_NOT_INCREASING, SCHEDULE, wrong, "let the schedule have an entry for every retry")
        })
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
        let fix =
            format!("{range}, or record the board's approval: who gave it, until when, and for how many attempts");
        let permission = self.permission(today);
        Some(Finding { permission, ..finding(&RETRIES_OUT_OF_RANGE, ATTEMPTS, wrong, fix) })
    }

    /// An approval is for a number of attempts, in the context that the policy is for.
    fn permission(&self, today: Date) -> Option<Permission> {
        let approval = self.spec.approval.as_ref().filter(|_| self.context == self.own)?;
        let (by, until) = (approval.by.clone(), approval.until);
        Some(if self.attempt_count() > approval.max_attempts {
            Permission::Exceeded { by, max_attempts: approval.max_attempts }
        } else if approval.holds_on(today) {
            Permission::Granted { by, until }
        } else {
            Permission::Expired { by, until }
        })
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
            "attempt {} of {} typically comes after {}, when the {} are over",
            late.attempt,
            self.policy.max_attempts,
            rounded(late.at.typical),
            duration_text(self.policy.total_budget)
        );
        let fix = "let the waits be shorter, totalBudgetMs longer, or maxAttempts smaller";
        Some(finding(&ATTEMPTS_TOO_LATE, ATTEMPTS, wrong, fix))
    }

    /// R-4.
    fn status_codes(&self, findings: &mut Vec<Finding>) {
        let Some(codes) = &self.spec.retryable_status_codes else { return };
        for code in codes {
            let retried = Retried { written: code.to_string(), standing: of_status(*code) };
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

/// Whether these waits are about the same from the first to the last. One retry has nothing to be compared with.
fn hardly_grow(ceilings: &[Duration]) -> bool {
    let (Some(first), Some(last)) = (ceilings.first(), ceilings.last()) else { return false };
    match ceilings.len() {
        1 => false,
        2 => first == last,
        _ => last.as_secs_f64() < first.as_secs_f64() * LEAST_GROWTH,
    }
}

/// Whether most of these waits are about as long as the one before.
fn mostly_stands_still(ceilings: &[Duration]) -> bool {
    let is_same = |pair: &&[Duration]| {
        let (before, after) = (pair[0].as_secs_f64(), pair[1].as_secs_f64());
        (before - after).abs() <= SAME_WITHIN * before.max(after)
    };
    let same = ceilings.windows(2).filter(is_same).count();
    same > 0 && 2 * same >= ceilings.len()
}

/// A time in whole seconds, where it has any.
fn rounded(duration: Duration) -> String {
    match duration.as_secs() {
        0 => duration_text(duration),
        seconds => duration_text(Duration::from_secs(seconds)),
    }
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
            (
                r#"{ "retryableStatusCodes": [408, 429, 500, 501, 502, 503, 504] }"#,
                "unlisted-status",
                "retryableStatusCodes[501]",
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
            let findings = policy(&serde_json::from_str(&json).unwrap(), None, TODAY.parse().unwrap());
            (findings[0].breaks_a_must(), findings[0].permission.clone())
        };
        let (by, day) = ("IAB".to_owned(), |text: &str| text.parse::<Date>().unwrap());
        assert_eq!(permission(TODAY), (false, Some(Permission::Granted { by: by.clone(), until: day(TODAY) })));
        assert_eq!(permission("2026-11-15"), (true, Some(Permission::Expired { by, until: day("2026-11-15") })));
    }

    #[test]
    fn an_approval_permits_nothing_but_the_number_of_retries() {
        let json = r#"{ "backoff": "fixed", "approval": { "by": "IAB", "until": "2027-01-31", "maxAttempts": 99 } }"#;
        let findings = policy(&serde_json::from_str(json).unwrap(), None, TODAY.parse().unwrap());
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
            let findings = policy(&serde_json::from_str(&json).unwrap(), context, TODAY.parse().unwrap());
            let found = findings.iter().find(|finding| finding.check.id == "retries-out-of-range").unwrap();
            (found.breaks_a_must(), found.permission.clone())
        };
        assert!(!permission(16, None).0);
        assert!(!permission(16, Some(Context::Event)).0);
        let exceeded = Permission::Exceeded { by: "IAB".into(), max_attempts: 16 };
        assert_eq!(permission(17, None), (true, Some(exceeded)));
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
        let rules: Vec<_> = policy(&serde_json::from_str(json).unwrap(), None, TODAY.parse().unwrap())
            .iter()
            .map(|finding| finding.check.rule.id())
            .collect();
        assert_eq!(rules, ["R-1", "R-2", "R-3", "R-4", "R-4"]);
    }
}
