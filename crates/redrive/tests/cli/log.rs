//! What a retry leaves in the log (R-10), and what it must not (R-9).

use std::io::Write;
use std::net::TcpStream;

use serde_json::Value;

use super::metrics::scrape;
use super::world::{Reply, Service, Target};

#[test]
fn every_failed_attempt_is_logged_with_what_identifies_it_and_without_a_secret() {
    let service = Service::start_with(&["--log-format", "json", "--log-level", "trace"]);
    let target = Target::replying(|_| Reply { status: 503, body: "the-answers-secret".into() });
    let url = target.url.replace("http://", "http://user:the-urls-secret@") + "?token=the-querys-secret";
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
        "--correlation-id",
        "checkout-9",
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
    let metrics = scrape(&service, "text/plain");
    assert!(!metrics.contains("s-secret") && !metrics.contains("order-7") && !metrics.contains(&task), "{metrics}");
    let ended = service.stop().with(0);

    let events: Vec<Value> = ended.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let failed: Vec<&Value> = events.iter().filter(|event| event["message"] == "attempt failed").collect();
    assert_eq!(failed.len(), 4, "{}", ended.stderr);
    // run, attempt within it, attempt in all
    for ((run, number, total), event) in [(1, 1, 1), (1, 2, 2), (2, 1, 3), (2, 2, 4)].into_iter().zip(&failed) {
        for (field, expected) in [
            ("correlation_id", Value::from("checkout-9")),
            ("task_id", task.as_str().into()),
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
    assert!(events.iter().any(|event| event["alert"] == "dead-letter" && event["correlation_id"] == "checkout-9"));
    assert!(!ended.stderr.contains("s-secret"), "{}", ended.stderr);
}

/// The seven fields of R-10.
const R_10: [&str; 7] =
    ["correlation_id", "dependency", "attempt", "max_attempts", "backoff_ms", "error_type", "idempotency_key"];

#[test]
fn with_json_every_line_is_an_event_and_every_attempt_has_all_fields() {
    let flags = [
        "--log-format",
        "json",
        "--log-successes",
        "info",
        "--log-keys",
        "hashed",
        "--log-level",
        "warn,redrive_engine=info",
    ];
    let service = Service::start_with(&flags);
    let target = Target::answering(&[503, 200]);
    let id = service.send(&[&target.url, "--key", "order-7", "--set", "initialDelayMs=1", "--wait"]);
    let ended = service.stop().with(0);
    assert_eq!(ended.stdout, "", "there is no greeting");
    let events: Vec<Value> = ended.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let attempts: Vec<&Value> = events.iter().filter(|event| !event["total_attempts"].is_null()).collect();
    let told: Vec<_> =
        attempts.iter().map(|event| [&event["message"], &event["error_type"], &event["outcome"]]).collect();
    assert_eq!(told, [["attempt failed", "http-status", "retryable"], ["attempt succeeded", "none", "success"]]);
    for event in attempts {
        assert!(R_10.iter().all(|field| !event[*field].is_null()), "{event}");
        assert_eq!(event["correlation_id"], id);
    }
    assert!(!ended.stderr.contains("order-7") && ended.stderr.contains("sha256:"), "{}", ended.stderr);
    assert!(events.iter().any(|event| event["message"] == "listening"));
}

/// A query parameter of such a name is refused, and the log says which it was.
const EVIL: &str = "a%0d%0aFAKE%1b[31m%c2%9b2J%e2%80%ae";

fn ask_evil(service: &Service) {
    let mut stream = TcpStream::connect(service.authority()).unwrap();
    let head = format!("GET /retry-tasks?{EVIL}=1 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    assert!(std::io::read_to_string(&mut stream).unwrap().starts_with("HTTP/1.1 400 "));
}

#[test]
fn what_a_caller_sends_cannot_forge_a_line_of_the_log_or_steer_a_terminal() {
    let service = Service::start_with(&["--log-level", "trace"]);
    ask_evil(&service);
    let ended = service.stop().with(0).says(&[r"a\r\nFAKE\u{1b}[31m\u{9b}2J\u{202e} is not a parameter of this path"]);
    assert!(!ended.stderr.lines().any(|line| line.starts_with("FAKE")), "{}", ended.stderr);
    assert!(!ended.stderr.contains(['\x1b', '\u{9b}', '\u{202e}']), "{:?}", ended.stderr);

    let service = Service::start_with(&["--log-level", "trace", "--log-format", "json"]);
    ask_evil(&service);
    let ended = service.stop().with(0);
    assert!(!ended.stderr.contains(['\x1b', '\u{9b}', '\u{202e}']), "{:?}", ended.stderr);
    let events: Vec<Value> = ended.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let refused = events.iter().find(|event| event["message"] == "a request was refused").unwrap();
    assert_eq!(refused["error"], "a\r\nFAKE\x1b[31m\u{9b}2J\u{202e} is not a parameter of this path");
}
