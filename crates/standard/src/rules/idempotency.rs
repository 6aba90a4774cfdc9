//! R-6: what makes a retry safe.

use std::time::Duration;

use redrive_core::duration::duration_text;
use redrive_core::id::IdempotencyKey;
use redrive_core::policy::{Context, Policy};

use super::check::{
    DEDUPE_KEY, DEDUPE_RETENTION, DUPLICATES_UNANSWERED, KEY_NOT_UUID, KEY_PER_ATTEMPT, KEY_RETENTION, KEY_TOO_LONG,
    MISSING_DEDUPE, UNKEYED_WRITES,
};
use super::declared::{DedupeBy, Idempotency, Key, KeyPer, Method, Service};
use super::finding::{Finding, Step};
use super::service::Call;

const HOUR: Duration = Duration::from_secs(60 * 60);
/// How long a server keeps a key, at least.
const KEY_KEPT: Duration = HOUR.saturating_mul(24);
/// How long a consumer remembers an event, at least.
const EVENT_KEPT: Duration = HOUR.saturating_mul(7 * 24);

const FIELD: &str = "idempotency";

/// The keys of a dependency's calls.
pub(super) fn keys(call: &Call<'_>) -> Vec<Finding> {
    let declared = call.dependency.idempotency.as_ref();
    let Some(idempotency) = declared.filter(|idempotency| idempotency.key != Key::None) else {
        return unkeyed(call, declared.is_some()).into_iter().collect();
    };
    let methods = &call.dependency.methods;
    // A key that is sent although none is needed need not be of any form.
    let is_needed = methods.is_empty() || methods.iter().any(|method| method.needs_key());
    judge_key(idempotency, is_needed)
}

fn unkeyed(call: &Call<'_>, said_so: bool) -> Option<Finding> {
    let (index, method) = call.dependency.methods.iter().enumerate().find(|(_, method)| method.needs_key())?;
    if !call.is_retried() {
        return None;
    }
    let wrong = format!("{} is retried without an idempotency key", method.as_str());
    let fix =
        "send an Idempotency-Key, one UUID v4 for each operation, and declare it: idempotency with the key uuid-v4";
    let at = match said_so {
        true => vec![Step::Field(FIELD), Step::Field("key")],
        false => vec![Step::Field("methods"), Step::Index(index)],
    };
    Some(Finding::new(&UNKEYED_WRITES, at, wrong, fix))
}

/// The finding for a task without an idempotency key that is retried.
pub fn unkeyed_task(method: &str, policy: &Policy) -> Option<Finding> {
    let method = Method::named(method).filter(|method| method.needs_key() && policy.max_attempts > 1)?;
    let wrong = format!("{} is retried, and the caller gave no idempotency key", method.as_str());
    let fix =
        "make a UUID v4 for the operation and give it as Idempotency-Key, the same one each time that it is submitted";
    Some(Finding::new(&UNKEYED_WRITES, [Step::Field("idempotencyKey")], wrong, fix))
}

fn judge_key(idempotency: &Idempotency, is_needed: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let at = |field| [Step::Field(FIELD), Step::Field(field)];
    if let Key::Other(other) = &idempotency.key
        && is_needed
    {
        let wrong = format!("the key is {other:?} and not a random UUID");
        let fix = "let the client make a UUID v4 for each operation, and declare the key as uuid-v4";
        findings.push(Finding::new(&KEY_NOT_UUID, at("key"), wrong, fix));
    }
    if idempotency.per == Some(KeyPer::Attempt) {
        let wrong = "each attempt has a key of its own";
        let fix = "make one key for the operation, send it with every attempt, and declare per as operation";
        findings.push(Finding::new(&KEY_PER_ATTEMPT, at("per"), wrong, fix));
    }
    let most = IdempotencyKey::MAX_CHARS;
    if let Some(length) = idempotency.max_length.filter(|length| usize::try_from(*length).is_ok_and(|it| it > most)) {
        let wrong = format!("keys may have {length} characters, {most} are allowed");
        findings.push(Finding::new(&KEY_TOO_LONG, at("maxLength"), wrong, format!("let maxLength be at most {most}")));
    }
    if let Some(kept) = idempotency.retention.filter(|retention| retention.0 < KEY_KEPT) {
        let wrong = format!("keys are kept for {}, at least 24h are asked for", duration_text(kept.0));
        findings.push(Finding::new(&KEY_RETENTION, at("retention"), wrong, "let retention be at least 24h"));
    }
    if idempotency.answers_duplicates == Some(false) {
        let wrong = "a duplicate does not get the answer that the first request got";
        let fix = "keep the first answer with the key, give it again, and declare answersDuplicates as true";
        findings.push(Finding::new(&DUPLICATES_UNANSWERED, at("answersDuplicates"), wrong, fix));
    }
    findings
}

/// The events that a service consumes.
pub(super) fn consumer(service: &Service) -> Vec<Finding> {
    let Some(dedupe) = &service.dedupe else {
        let missing = service.context == Context::Event;
        let wrong = "it consumes events and declares no deduplication store";
        let fix =
            "keep the ids of events that were processed, and declare it: dedupe by event-id with a retention of 7d";
        return missing
            .then(|| Finding::new(&MISSING_DEDUPE, [Step::Field("dedupe")], wrong, fix))
            .into_iter()
            .collect();
    };
    let mut findings = Vec::new();
    let at = |field| [Step::Field("dedupe"), Step::Field(field)];
    if let Some(DedupeBy::Other(by)) = &dedupe.by {
        let wrong = format!("events are told apart by {by:?}");
        let fix = "key the store on the event's id, and declare by as event-id";
        findings.push(Finding::new(&DEDUPE_KEY, at("by"), wrong, fix));
    }
    if dedupe.retention.0 < EVENT_KEPT {
        let wrong = format!("event ids are kept for {}, at least 7d are asked for", duration_text(dedupe.retention.0));
        findings.push(Finding::new(&DEDUPE_RETENTION, at("retention"), wrong, "let retention be at least 7d"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::service::tests::{BUDGET, DEAD_LETTERS, found, found_in};
    use super::*;

    fn here(rest: &str) -> Vec<(&'static str, String)> {
        found("sync", &format!("{BUDGET}, {rest}"))
    }

    #[test]
    fn post_and_patch_need_a_key_and_other_methods_do_not() {
        for method in ["POST", "post", "PATCH"] {
            let expected = [("unkeyed-writes", "dependencies[0].methods[1]".to_owned())];
            assert_eq!(here(&format!(r#""methods": ["GET", "{method}"]"#)), expected);
        }
        assert_eq!(here(r#""methods": ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]"#), []);
        let expected = [("unkeyed-writes", "dependencies[0].idempotency.key".into())];
        assert_eq!(here(r#""methods": ["POST"], "idempotency": { "key": "none" }"#), expected);
    }

    #[test]
    fn a_post_that_is_never_retried_needs_no_key() {
        let found = here(r#""methods": ["POST"], "policy": { "maxAttempts": 1 }"#);
        assert_eq!(found, [("never-retries", "dependencies[0].policy.maxAttempts".into())]);
        let (once, twice) = [1, 2].map(|max_attempts| Policy { max_attempts, ..Policy::default() }).into();
        assert_eq!(unkeyed_task("POST", &once), None);
        assert_eq!(unkeyed_task("PUT", &twice), None);
        assert!(unkeyed_task("patch", &twice).is_some());
    }

    #[test]
    fn the_form_of_a_key_matters_only_where_one_is_needed() {
        let with =
            |methods: &str| here(&format!(r#""methods": [{methods}], "idempotency": {{ "key": "order number" }}"#));
        assert_eq!(with(r#""GET", "PUT""#), []);
        assert_eq!(with(r#""POST""#), [("key-not-uuid", "dependencies[0].idempotency.key".into())]);
        assert_eq!(with(""), [("key-not-uuid", "dependencies[0].idempotency.key".into())]);
    }

    #[test]
    fn the_standards_own_words_are_understood() {
        let words = r#""key": "UUID v4", "per": "logical operation""#;
        assert_eq!(here(&format!(r#""methods": ["post"], "idempotency": {{ {words} }}"#)), []);
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
