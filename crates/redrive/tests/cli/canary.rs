//! Secrets and personal data in every field that a caller or a dependency controls appear nowhere but where they belong.

use std::time::Instant;

use serde_json::json;

use super::metrics::scrape;
use super::world::{PATIENCE, Reply, Service, Target, post};

/// Sent to the dependency, and shown nowhere.
const SECRETS: [&str; 7] = [
    "canary-authorization",
    "canary-cookie",
    "canary-api-key",
    "canary-query-token",
    "canary-sink-url",
    "canary-sink-authorization",
    "canary-otlp-header",
];

/// Contents: the API returns them to those who may read the task. No log, metric or alert has them.
const CONTENTS: [&str; 4] = ["canary-body", "canary-answer", "canary-plain-header", "canary-label"];

/// What the API must answer without: secrets. What everything else must be without: secrets and contents.
fn has_none(text: &str, what: &str, canaries: &[&str]) {
    for canary in canaries {
        let found = text.find(canary).map(|at| {
            let start = text[..at].char_indices().rev().nth(300).map_or(0, |(start, _)| start);
            &text[start..at + canary.len()]
        });
        assert_eq!(found, None, "{what} has {canary}");
    }
}

/// Submissions that are wrong in one field each, with a secret in it. The answers say what is wrong without it.
fn refuse_what_is_wrong_in_every_field(service: &Service) {
    let wrong = [
        json!({ "targetUrl": "ftp://user:canary-authorization@127.0.0.1/?token=canary-query-token" }),
        json!({ "headers": { "authorization": "Bearer canary-authorization\u{1}" } }),
        json!({ "headers": { "cookie": ["canary-cookie\n"] } }),
        json!({ "headers": { "x-api-key": { "value": "canary-api-key" } } }),
        json!({ "body": "canary-body", "bodyBase64": "canary-body" }),
        json!({ "bodyBase64": "canary-body!" }),
        json!({ "idempotencyKey": "canary-key ".repeat(20) }),
        json!({ "correlationId": "a b" }),
        json!({ "labels": { "who": { "name": "canary-label" } } }),
        json!({ "policy": { "maxAttempts": "canary-body" } }),
    ];
    for change in wrong {
        let mut task = json!({ "targetUrl": "http://127.0.0.1:9/", "policyId": "default" });
        for (field, value) in change.as_object().unwrap() {
            task[field] = value.clone();
        }
        let (code, refused) = post(service.authority(), "/retry-tasks", &task.to_string());
        assert!(code == 400 || code == 422, "{change}: {code} {refused}");
        has_none(&refused.to_string(), &format!("the error of {change}"), &SECRETS);
    }
    // Of other operations: a reason, an operation's key, an event.
    for (path, document) in [
        ("/dependencies/billing/pause", json!({ "reason": "canary-authorization\u{1}" })),
        ("/idempotency-records/pay/k/reserve", json!({ "requestHash": "canary-authorization" })),
        ("/alerts/silences", json!({ "forMs": 1, "reason": "canary-cookie\u{1}" })),
    ] {
        let (code, refused) = post(service.authority(), path, &document.to_string());
        assert!((400..500).contains(&code), "{path}: {code} {refused}");
        has_none(&refused.to_string(), path, &SECRETS);
    }
}

#[test]
fn secrets_and_contents_are_in_no_log_metric_span_alert_or_error() {
    let spans = Target::replying(|_| Reply { status: 200, body: String::new() });
    let receiver = Target::answering(&[200]);
    let directory = tempfile::tempdir().unwrap();
    let sinks = format!(
        "[alerts]\nwait = \"0s\"\ninterval = \"0s\"\n[alerts.sinks.ops]\nkind = \"webhook\"\nurl = \"{}/canary-sink-url\"\n\
         authorization = \"Bearer canary-sink-authorization\"\n",
        receiver.url
    );
    std::fs::write(directory.path().join("redrive.toml"), sinks).unwrap();
    let flags = ["--config", "redrive.toml", "--log-level", "trace", "--log-format", "json", "--log-keys", "hashed"];
    let traces = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", spans.url.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20canary-otlp-header"),
    ];
    let service = Service::start_with_variables(directory.path(), &flags, &traces);
    // The dependency repeats in its answer what it was sent.
    let target = Target::replying(|arrival| Reply {
        status: arrival.path.split(['/', '?']).nth(1).unwrap().parse().unwrap(),
        body: format!("canary-answer {}", String::from_utf8_lossy(&arrival.body)),
    });
    let mut shown = String::new();
    for (status, key) in [(200, "canary-key-1"), (404, "canary-key-2"), (503, "canary-key-3")] {
        let task = json!({
            "targetUrl": format!("{}/{status}?token=canary-query-token&page=2", target.url),
            "dependency": "billing",
            "idempotencyKey": key,
            "headers": {
                "authorization": "Bearer canary-authorization",
                "cookie": "session=canary-cookie",
                "x-api-key": "canary-api-key",
                "x-note": "canary-plain-header",
            },
            "body": "canary-body name@example.com",
            "labels": { "who": "canary-label" },
            "policy": { "maxAttempts": 2, "initialDelayMs": 1 },
        });
        let (code, answer) = post(service.authority(), "/retry-tasks", &task.to_string());
        assert_eq!(code, 201, "{answer}");
        let id = answer["taskId"].as_str().unwrap().to_owned();
        shown += &answer.to_string();
        let started = Instant::now();
        while service.task(&id)["endedAt"].is_null() {
            assert!(started.elapsed() < PATIENCE, "{id} never ended");
        }
        shown += &service.task(&id).to_string();
        shown += &service.run(&["tasks", "attempts", &id, "--json"]).with(0).stdout;
        shown += &service.run(&["tasks", "show", &id]).with(0).stdout;
        // Another request with the same key.
        let mut other = task.clone();
        other["body"] = json!("another canary-body");
        let (code, refused) = post(service.authority(), "/retry-tasks", &other.to_string());
        assert_eq!(code, 422, "{refused}");
        has_none(&refused.to_string(), "an error", &SECRETS);
        has_none(&refused.to_string(), "an error", &CONTENTS);
    }
    refuse_what_is_wrong_in_every_field(&service);
    for arrival in target.arrived() {
        assert_eq!(arrival.header("authorization"), Some("Bearer canary-authorization"), "it does arrive");
    }
    shown += &service.run(&["tasks", "list", "--json"]).with(0).stdout;
    shown += &service.run(&["alerts", "list", "--json"]).with(0).stdout;
    shown += &service.run(&["alerts", "test", "ops", "--json"]).with(0).stdout;
    shown += &service.run(&["config", "--config", "redrive.toml"]).stdout;
    shown += &service.run(&["report", "--json"]).stdout;
    shown += &service.run(&["dependencies", "show", "billing", "--json"]).with(0).stdout;
    has_none(&shown, "the API", &SECRETS);
    let metrics = scrape(&service, "text/plain");
    has_none(&metrics, "/metrics", &[&SECRETS[..], &CONTENTS].concat());
    has_none(&metrics, "/metrics", &["canary-key"]);
    let events = service.run(&["events", "--json"]).with(0).stdout;
    assert!(events.contains("dead-letter"), "{events}");
    has_none(&events, "/events", &[&SECRETS[..], &CONTENTS, &["canary-key", "name@example.com"]].concat());
    let told = receiver.arrival();
    assert_eq!(told.header("authorization"), Some("Bearer canary-sink-authorization"));
    let ended = service.stop();
    let told: Vec<u8> = [told].into_iter().chain(receiver.arrived()).flat_map(|one| one.body).collect();
    has_none(&String::from_utf8_lossy(&told), "a notification", &[&SECRETS[..], &CONTENTS, &["canary-key"]].concat());
    let exports = spans.arrived();
    assert_eq!(exports[0].header("authorization"), Some("Bearer canary-otlp-header"));
    let exported: Vec<u8> = exports.into_iter().flat_map(|export| export.body).collect();
    let exported = String::from_utf8_lossy(&exported);
    assert!(exported.contains("billing") && exported.contains("redrive task"), "spans were exported");
    has_none(&exported, "a span", &[&SECRETS[..], &CONTENTS, &["canary-key", "name@example.com"]].concat());
    assert!(ended.stderr.contains("\"level\":\"DEBUG\""), "the log has all levels");
    has_none(&ended.stderr, "the log", &[&SECRETS[..], &CONTENTS, &["canary-key", "name@example.com"]].concat());
}
