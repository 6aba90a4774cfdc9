//! R-6: what makes a retry safe.

use std::time::Duration;

use super::check::{
    DEDUPE_KEY, DEDUPE_RETENTION, DUPLICATES_UNANSWERED, KEY_NOT_UUID, KEY_PER_ATTEMPT, KEY_RETENTION, KEY_TOO_LONG,
    MISSING_DEDUPE, UNKEYED_WRITES,
};
use super::declared::{Idempotency, Service};
use super::finding::{Finding, Step};
use super::service::Call;
use crate::duration::duration_text;
use crate::id::IdempotencyKey;
use crate::policy::{Context, Policy};

const HOUR: Duration = Duration::from_secs(60 * 60);
/// How long a server keeps a key, at least.
const KEY_KEPT: Duration = HOUR.saturating_mul(24);
/// How long a consumer remembers an event, at least.
const EVENT_KEPT: Duration = HOUR.saturating_mul(7 * 24);

const FIELD: &str = "idempotency";
const EXAMPLE: &str = "idempotency = { key = \"uuid-v4\", per = \"operation\", retention = \"24h\" }";

/// The keys of a dependency's calls.
pub(super) fn keys(call: &Call<'_>) -> Vec<Finding> {
    let declared = call.dependency.idempotency.as_ref();
    let Some(idempotency) = declared.filter(|idempotency| !is(&idempotency.key, "none")) else {
        return unkeyed(call, declared.is_some()).into_iter().collect();
    };
    judge_key(idempotency)
}

fn unkeyed(call: &Call<'_>, said_so: bool) -> Option<Finding> {
    let method = call.dependency.methods.iter().find(|method| needs_key(method)).filter(|_| call.is_retried())?;
    let wrong = format!("{} is retried without an idempotency key", method.to_ascii_uppercase());
    let fix = format!("send an Idempotency-Key and declare it: {EXAMPLE}");
    let at = match said_so {
        true => vec![Step::Field(FIELD), Step::Field("key")],
        false => vec![Step::Field("methods"), Step::Item(method.clone())],
    };
    Some(Finding::new(&UNKEYED_WRITES, at, wrong, fix))
}

/// What is wrong with a task that comes without a key and is retried all the same.
pub fn unkeyed_task(method: &str, policy: &Policy) -> Option<Finding> {
    if !needs_key(method) || policy.max_attempts == 1 {
        return None;
    }
    let wrong = format!("{} is retried, and the caller gave no idempotency key", method.to_ascii_uppercase());
    let fix =
        "make a UUID v4 for the operation and give it as Idempotency-Key, the same one each time that it is submitted";
    Some(Finding::new(&UNKEYED_WRITES, [Step::Field("idempotencyKey")], wrong, fix))
}

/// Whether a method is safe to retry only with a key.
fn needs_key(method: &str) -> bool {
    is(method, "POST") || is(method, "PATCH")
}

fn judge_key(idempotency: &Idempotency) -> Vec<Finding> {
    let mut findings = Vec::new();
    let at = |field| [Step::Field(FIELD), Step::Field(field)];
    if !["uuid-v4", "uuid4", "uuidv4"].iter().any(|name| is(&idempotency.key, name)) {
        let wrong = format!("the key is {:?} and not a random UUID", idempotency.key);
        findings.push(Finding::new(
            &KEY_NOT_UUID,
            at("key"),
            wrong,
            "let the client make a UUID v4: key = \"uuid-v4\"",
        ));
    }
    if let Some(per) = idempotency.per.as_deref().filter(|per| !is(per, "operation")) {
        let wrong = format!("the key is made per {per}");
        let fix = "make one key per logical operation and send it with every attempt: per = \"operation\"";
        findings.push(Finding::new(&KEY_PER_ATTEMPT, at("per"), wrong, fix));
    }
    let most = IdempotencyKey::MAX_CHARS;
    if let Some(length) = idempotency.max_length.filter(|length| usize::try_from(*length).is_ok_and(|it| it > most)) {
        let wrong = format!("keys may have {length} characters, {most} are allowed");
        findings.push(Finding::new(&KEY_TOO_LONG, at("maxLength"), wrong, format!("let maxLength be at most {most}")));
    }
    if let Some(kept) = idempotency.retention.filter(|retention| retention.0 < KEY_KEPT) {
        let wrong = format!("keys are kept for {}, at least 24h are asked for", duration_text(kept.0));
        findings.push(Finding::new(&KEY_RETENTION, at("retention"), wrong, "let retention be at least \"24h\""));
    }
    if idempotency.answers_duplicates == Some(false) {
        let wrong = "a duplicate does not get the answer that the first request got";
        let fix = "keep the first answer with the key and give it again: answersDuplicates = true";
        findings.push(Finding::new(&DUPLICATES_UNANSWERED, at("answersDuplicates"), wrong, fix));
    }
    findings
}

/// The events that a service consumes.
pub(super) fn consumer(service: &Service) -> Vec<Finding> {
    const EXAMPLE: &str = "dedupe = { by = \"event-id\", retention = \"7d\" }";
    let Some(dedupe) = &service.dedupe else {
        let missing = service.context == Context::Event;
        let wrong = "it consumes events and declares no deduplication store";
        let fix = format!("keep the ids of events that were processed: {EXAMPLE}");
        return missing
            .then(|| Finding::new(&MISSING_DEDUPE, [Step::Field("dedupe")], wrong, fix))
            .into_iter()
            .collect();
    };
    let mut findings = Vec::new();
    let at = |field| [Step::Field("dedupe"), Step::Field(field)];
    if let Some(by) = dedupe.by.as_deref().filter(|by| !["event-id", "eventId", "event_id"].iter().any(|id| is(by, id)))
    {
        let wrong = format!("events are told apart by {by}");
        findings.push(Finding::new(&DEDUPE_KEY, at("by"), wrong, "key the store on the event's id: by = \"event-id\""));
    }
    if dedupe.retention.0 < EVENT_KEPT {
        let wrong = format!("event ids are kept for {}, at least 7d are asked for", duration_text(dedupe.retention.0));
        findings.push(Finding::new(&DEDUPE_RETENTION, at("retention"), wrong, "let retention be at least \"7d\""));
    }
    findings
}

fn is(text: &str, name: &str) -> bool {
    text.trim().eq_ignore_ascii_case(name)
}

#[cfg(test)]
mod tests {
    use super::super::service::tests::{BUDGET, DEAD_LETTERS, found, found_in};

    fn here(rest: &str) -> Vec<(&'static str, String)> {
        found("sync", &format!("{BUDGET}, {rest}"))
    }

    #[test]
    fn post_and_patch_need_a_key_and_other_methods_do_not() {
        for method in ["POST", "post", "PATCH"] {
            let expected = [("unkeyed-writes", format!("dependencies[0].methods[{method}]"))];
            assert_eq!(here(&format!(r#""methods": ["GET", "{method}"]"#)), expected);
        }
        assert_eq!(here(r#""methods": ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]"#), []);
        let expected = [("unkeyed-writes", "dependencies[0].idempotency.key".into())];
        assert_eq!(here(r#""methods": ["POST"], "idempotency": { "key": "none" }"#), expected);
    }

    #[test]
    fn a_post_that_is_never_retried_needs_no_key() {
        let found = here(r#""methods": ["POST"], "policy": { "maxAttempts": 1 }"#);
        assert_eq!(found, [("retries-out-of-range", "dependencies[0].policy.maxAttempts".into())]);
    }

    #[test]
    fn a_key_is_a_uuid_of_the_operation_that_is_kept_for_a_day() {
        let good =
            r#""key": "uuid-v4", "per": "operation", "maxLength": 64, "retention": "24h", "answersDuplicates": true"#;
        assert_eq!(here(&format!(r#""methods": ["POST"], "idempotency": {{ {good} }}"#)), []);
        for (fields, check, field) in [
            (r#""key": "order-number""#, "key-not-uuid", "key"),
            (r#""key": "uuid-v4", "per": "attempt""#, "key-per-attempt", "per"),
            (r#""key": "uuid-v4", "maxLength": 65"#, "key-too-long", "maxLength"),
            (r#""key": "uuid-v4", "retention": "23h""#, "key-retention", "retention"),
            (r#""key": "uuid-v4", "answersDuplicates": false"#, "duplicates-unanswered", "answersDuplicates"),
        ] {
            let expected = [(check, format!("dependencies[0].idempotency.{field}"))];
            assert_eq!(here(&format!(r#""methods": ["POST"], "idempotency": {{ {fields} }}"#)), expected);
        }
    }

    #[test]
    fn an_event_consumer_remembers_event_ids_for_a_week() {
        let service = |dedupe: &str| {
            found_in(&format!(
                r#"{{ "name": "shop", "context": "event", "dependencies": [{{ "name": "a", {BUDGET}, {DEAD_LETTERS} }}] {dedupe} }}"#
            ))
        };
        assert_eq!(service(""), [("missing-dedupe", "dedupe".into())]);
        assert_eq!(service(r#", "dedupe": { "retention": "7d", "by": "event-id" }"#), []);
        assert_eq!(service(r#", "dedupe": { "retention": "6d" }"#), [("dedupe-retention", "dedupe.retention".into())]);
        assert_eq!(
            service(r#", "dedupe": { "retention": "9d", "by": "content" }"#),
            [("dedupe-key", "dedupe.by".into())]
        );
        assert_eq!(found_in(r#"{ "name": "shop", "context": "sync" }"#), []);
    }
}
