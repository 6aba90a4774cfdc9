//! What a retry leaves in the log, and what it must not.

use serde_json::Value;

use super::world::{Reply, Service, Target};

#[test]
fn every_failed_attempt_is_logged_with_what_identifies_it_and_without_a_secret() {
    let service = Service::start_with(&["--log-format", "json", "--log-level", "trace"]);
    let target = Target::replying(|_| Reply { status: 503, body: "the-answers-secret".into() });
    let url = target.url.replace("http://", "http://user:the-urls-secret@");
    let words = [
        "send",
        &url,
        "-d",
        "the-bodys-secret",
        "-H",
        "Authorization: Bearer the-tokens-secret",
        "-H",
        "Cookie: the-cookies-secret",
        "--key",
        "order-7",
        "--dependency",
        "billing",
        "--set",
        "maxAttempts=2",
        "--set",
        "initialDelayMs=1",
        "--wait",
        "--json",
    ];
    let task = service.run(&words).with(3).json()["taskId"].as_str().unwrap().to_owned();
    service.run(&["tasks", "replay", &task]).with(0);
    service.run(&["tasks", "watch", &task]).with(3);
    let ended = service.stop().with(0);

    let events: Vec<Value> = ended.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let failed: Vec<&Value> = events.iter().filter(|event| event["message"] == "attempt failed").collect();
    assert_eq!(failed.len(), 4, "{}", ended.stderr);
    // run, attempt within it, attempt in all
    for ((run, number, total), event) in [(1, 1, 1), (1, 2, 2), (2, 1, 3), (2, 2, 4)].into_iter().zip(&failed) {
        for (field, expected) in [
            ("correlation_id", Value::from(task.as_str())),
            ("dependency", "billing".into()),
            ("attempt", number.into()),
            ("max_attempts", 2.into()),
            ("run", run.into()),
            ("total_attempts", total.into()),
            ("error_type", "http-status".into()),
            ("idempotency_key", "order-7".into()),
        ] {
            assert_eq!(event[field], expected, "{field} in {event}");
        }
    }
    assert!(failed[0]["backoff_ms"].as_u64().is_some_and(|backoff| backoff <= 1), "{}", failed[0]);
    assert!(events.iter().any(|event| event["alert"] == "dead-letter" && event["correlation_id"] == task.as_str()));
    assert!(!ended.stderr.contains("s-secret"), "{}", ended.stderr);
}
