//! A submission: the document of `POST /retry-tasks`.

use std::sync::Arc;

use fastrand::Rng;
use redrive_core::policy::Limits as PolicyLimits;
use redrive_core::{IdempotencyKey, Lane, Task, TaskId};
use redrive_engine::transport::{AlwaysOpen, Outbound};
use redrive_server::operations::{Acceptance, Accepted, SubmissionHeaders, submit_task};
use redrive_server::wire::{self, FieldFault, Malformed, Submission, parse};
use redrive_server::{Limits, OperationError};
use redrive_store::TaskDetail;

use super::json::{self, Field};
use crate::target::Target;
use crate::world::{NOW, World, block_on};

pub(crate) const TARGET: Target = Target {
    name: "submission",
    what: "the document of POST /retry-tasks",
    run,
    samples,
    words: WORDS,
    generate: |random| generate(random).into_bytes(),
    max_bytes: 16 * 1024,
};

/// Tokens of submissions.
pub(crate) const WORDS: &[&str] = &[
    "\"targetUrl\":",
    "\"method\":",
    "\"headers\":",
    "\"body\":",
    "\"bodyJson\":",
    "\"bodyBase64\":",
    "\"bodyRef\":",
    "\"policyId\":",
    "\"policy\":",
    "\"idempotencyKey\":",
    "\"dependency\":",
    "\"delayMs\":",
    "\"notBefore\":",
    "\"labels\":",
    "http://",
    "https://",
    "[::1]",
    "127.0.0.1",
    "user:secret@",
    ":443",
    ":0",
    "%00",
    "#",
    "?",
    "\\u0000",
    "\\ud800",
    "\\n",
    "null",
    "{}",
    "[]",
    ",",
    "\"maxAttempts\":",
    "\"backoff\":\"schedule\"",
    "\"scheduleMs\":[]",
    "é",
    "\u{202e}",
    "\"host\":",
    "content-length",
    "1970-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999+23:59",
];

const FIELDS: &[Field] = &[
    (
        "targetUrl",
        &[
            "\"https://example.com/hooks?a=b\"",
            "\"http://127.0.0.1:1/\"",
            "\"http://[::1]:8080/x\"",
            "\"HTTPS://User:p%20w@Example.com:443/\"",
            "\"http://1.2.3.4.5:65535?\"",
            "\"https://xn--nxasmq6b/%7Ba%7D{b}\"",
            "\"https://example.com/a|b\\\\c^d`e\"",
            "\"http://a_b.-c-/\"",
        ],
    ),
    ("method", &["\"POST\"", "\"get\"", "\"PURGE\"", "\"CONNECT\"", "\"M-SEARCH\"", "\"A B\""]),
    (
        "headers",
        &[
            "{\"content-type\":\"text/html\"}",
            "{\"X-A\":[\"1\",\"2\"],\"x-a\":\"\"}",
            "{\"Host\":\"other.example:99\"}",
            "{\"host\":\"not a host\"}",
            "{\"Connection\":\"close\"}",
            "{\"a\":\"\\u007f\"}",
            "{\"a\":\"naïve\"}",
        ],
    ),
    ("body", &["\"text\"", "\"\"", "\"\\u0000\""]),
    ("bodyJson", &["null", "{\"a\":1.0e400}", "[ 1 ]"]),
    ("bodyBase64", &["\"/w==\"", "\"AA\"", "\"=\""]),
    ("policyId", &["\"default\"", "\"nobody\"", "\"a b\""]),
    (
        "policy",
        &[
            "{}",
            "{\"maxAttempts\":1}",
            "{\"backoff\":\"fixed\",\"initialDelayMs\":1}",
            "{\"backoff\":\"schedule\",\"scheduleMs\":[0,2592000000]}",
            "{\"multiplier\":100,\"jitterType\":\"DECORRELATED\"}",
            "{\"jitterType\":\"PROPORTIONAL\",\"jitterRatio\":5e-324}",
            "{\"totalBudgetMs\":1}",
            "{\"retryableStatusCodes\":[599,599]}",
            "{\"context\":\"webhook\"}",
        ],
    ),
    ("idempotencyKey", &["\"order-1234\"", "\"~\"", "\"a b\""]),
    ("dependency", &["\"billing\"", "\"https://example.com\""]),
    ("delayMs", &["0", "1", "86400000", "18446744073709551615"]),
    (
        "notBefore",
        &["0", "1700000000001", "18446744073709551615", "\"2023-11-14T22:13:21Z\"", "\"+2023-11-14T22:13Z\""],
    ),
    ("labels", &["{\"team\":\"billing\"}", "{\"a.b_c-d\":\"\"}", "{\"\":\"x\"}"]),
];

fn samples() -> Vec<Vec<u8>> {
    json::texts(&[
        r#"{"targetUrl":"https://example.com/hooks"}"#,
        r#"{"targetUrl":"https://user:secret@example.com:8443/a?b=c","method":"PUT","headers":{"X-A":["1","2"],"accept":"*/*"},
            "bodyJson":{"order":1234},"policyId":"default","policy":{"maxAttempts":3,"retryableStatusCodes":[503]},
            "idempotencyKey":"order-1234","dependency":"billing","delayMs":1000,"labels":{"team":"billing"}}"#,
        r#"{"targetUrl":"http://[::1]/","bodyBase64":"//79","notBefore":"2023-11-15T00:13:20.25+02:00"}"#,
        r#"{"targetUrl":"http://127.0.0.1/","body":"h\u00e9llo\ud83d\ude00"}"#,
    ])
}

/// A document with some of the fields.
pub(crate) fn generate(random: &mut Rng) -> String {
    json::object(random, FIELDS)
}

fn run(input: &[u8]) {
    let submission: Submission<'_> = match parse(input) {
        Ok(submission) => submission,
        Err(malformed) => return check_malformed(input, &malformed),
    };
    block_on(async {
        let world = World::start().await;
        match submit_task(&world.app, &world.caller, submission.clone(), &SubmissionHeaders::default()).await {
            Err(failure) => check_failure(&failure, ""),
            Ok(accepted) => {
                check_accepted(&accepted, &world.app.limits);
                check_again(&world, submission, &accepted).await;
            }
        }
    });
}

/// A refusal describes the problem, and its location unless it is the whole document.
pub(crate) fn check_malformed(input: &[u8], malformed: &Malformed) {
    let as_json = serde_json::from_slice::<serde::de::IgnoredAny>(input);
    match malformed {
        // An input with a data error that is no JSON after it counts as no JSON. A string may be skipped and yet be
        // invalid (half of a surrogate pair), so JSON that can be skipped is not always JSON that can be read.
        Malformed::Syntax(message) => {
            let as_value = serde_json::from_slice::<serde_json::Value>(input);
            assert!(as_value.is_err(), "this is JSON, and was taken for none: {message}");
        }
        Malformed::Shape { field, message } => {
            assert!(as_json.is_ok(), "this is no JSON, and was taken for it: {message}");
            assert!(!message.is_empty() && message.len() <= 1_100, "a message of {} bytes", message.len());
            let is_object = input.trim_ascii_start().starts_with(b"{");
            let place = field.as_deref().unwrap_or_default();
            assert!(!is_object || field.is_some(), "a mistake in an object has no place: {message}");
            assert!(place.len() <= 300, "a place of {} bytes", place.len());
        }
    }
}

/// A refusal is about one of the caller's values, and names it.
pub(crate) fn check_failure(failure: &OperationError, outer: &str) {
    let named = |field: &str| assert!(field.starts_with(outer) && field.len() > outer.len(), "{field:?}: {failure}");
    match failure {
        OperationError::Invalid(faults) => {
            assert!(!faults.is_empty());
            for FieldFault { field, message } in faults {
                named(field);
                assert!(!message.is_empty(), "{field}");
            }
        }
        OperationError::TooLarge { field, .. }
        | OperationError::InvalidKey { field, .. }
        | OperationError::UnknownPolicy { field, .. }
        | OperationError::UnknownBody { field, .. } => {
            named(field);
        }
        other => panic!("a refusal that is no fault of the caller's: {other:?}"),
    }
}

/// An accepted task is within its bounds, can be shown, and can be sent.
pub(crate) fn check_accepted(accepted: &Accepted, limits: &Limits) {
    let TaskDetail { task, request, .. } = &accepted.detail;
    assert_eq!(accepted.how, Acceptance::Created);
    assert!(request.target_url.len() <= limits.url_bytes && request.body.length() <= limits.body_bytes as u64);
    // The content type that the body implies is added.
    assert!(request.headers.len() <= limits.headers + 1 && request.labels.len() <= limits.labels);
    check_times(task);
    let secrets = wire::Secrets::default();
    let shown = serde_json::to_value(wire::Task::full(&accepted.detail, &secrets)).expect("a task can be shown");
    let url = shown["targetUrl"].as_str().expect("a task shows its target");
    let authority = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?']).next()).unwrap_or_default();
    if let Some((user, _)) = authority.rsplit_once('@') {
        assert_eq!(user, "***", "a password is shown: {url}");
    }
    let outbound = outbound(task, &accepted.detail);
    let sendable = redrive_transport::check(&outbound);
    assert_eq!(sendable, Ok(()), "{} {} was accepted and cannot be sent", request.method, request.target_url);
}

fn check_times(task: &Task) {
    let due = task.next_attempt_at.expect("a task that was accepted is due some time");
    assert!(task.created_at == NOW && due >= NOW && due < task.deadline_at, "{task:?}");
    assert!(PolicyLimits::MAX_ATTEMPTS.contains(&task.max_attempts), "{task:?}");
    assert!(PolicyLimits::ATTEMPT_TIMEOUT.contains(&task.attempt_timeout), "{task:?}");
}

fn outbound(task: &Task, detail: &TaskDetail) -> Outbound {
    Outbound {
        lane: Lane::clone(&task.lane),
        request: Arc::clone(&detail.request),
        idempotency_key: IdempotencyKey::clone(&task.idempotency_key),
        task: TaskId::clone(&task.id),
        attempt: 1,
        trace: None,
        connect_timeout: task.attempt_timeout,
        attempt_timeout: task.attempt_timeout,
        gate: Arc::new(AlwaysOpen),
    }
}

/// The same document with the same key is the same task; another document with it is refused.
async fn check_again(world: &World, submission: Submission<'_>, accepted: &Accepted) {
    let key = accepted.detail.task.idempotency_key.as_str();
    let keyed = SubmissionHeaders { idempotency_key: Some(key), ..SubmissionHeaders::default() };
    let again = submit_task(&world.app, &world.caller, submission.clone(), &keyed).await;
    let again = again.expect("what was accepted is accepted again");
    assert_eq!((again.how, again.detail.task.id), (Acceptance::Replayed, accepted.detail.task.id));
    let other = Submission { delay_ms: Some(submission.delay_ms.map_or(1, |delay| delay ^ 1)), ..submission };
    let other = Submission { not_before: None, ..other };
    match submit_task(&world.app, &world.caller, other, &keyed).await {
        Err(OperationError::KeyReused(id)) => assert_eq!(id, accepted.detail.task.id),
        other => panic!("another request with the same key: {other:?}"),
    }
}
