//! `redrive events`, over the real service.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use super::metrics::{scrape, sum};
use super::world::{PATIENCE, Reply, Service, Target};

/// A target that answers with the status in the path.
fn target() -> Target {
    Target::replying(|arrival| {
        let (_, status) = arrival.path.rsplit_once('/').unwrap();
        Reply { status: status.parse().unwrap(), body: String::new() }
    })
}

fn send(service: &Service, target: &Target, status: u16, code: i32) {
    let url = format!("{}/{status}", target.url);
    let words =
        ["send", &url, "--dependency", "billing", "--set", "maxAttempts=3", "--set", "initialDelayMs=1", "--wait"];
    service.run(&words).with(code);
}

/// The events that the command prints, as JSON.
fn events(service: &Service, words: &[&str]) -> Vec<Value> {
    let ended = service.run(&[&["events", "--json"], words].concat()).with(0);
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The events once there are this many: the end of a task is told right after it is stored.
fn events_once(service: &Service, words: &[&str], count: usize) -> Vec<Value> {
    let started = Instant::now();
    loop {
        let all = events(service, words);
        if all.len() >= count {
            return all;
        }
        assert!(started.elapsed() < PATIENCE, "{all:?}");
    }
}

/// How many events have each value of a field.
fn counts(events: &[Value], kind: &str, field: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in events.iter().filter(|event| event["kind"] == kind) {
        *counts.entry(event[field].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

fn numbers(of: &[(&str, usize)]) -> BTreeMap<String, usize> {
    of.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn the_numbers_are_those_of_the_target_and_of_the_metrics() {
    let (service, target) = (Service::start(), target());
    for (status, code) in [(200, 0), (503, 3), (404, 3), (200, 0), (503, 3)] {
        send(&service, &target, status, code);
    }
    let mut ledger: BTreeMap<String, usize> = BTreeMap::new();
    for arrival in target.arrived() {
        *ledger.entry(arrival.path).or_default() += 1;
    }
    assert_eq!(ledger, numbers(&[("/200", 2), ("/404", 1), ("/503", 6)]));
    // Accepted, attempts, retries, ends, dead letters.
    let all = events_once(&service, &[], 5 + 9 + 4 + 5 + 3);
    let outcomes = counts(&all, "attempt", "outcome");
    assert_eq!(outcomes, numbers(&[("permanent", 1), ("retryable", 6), ("success", 2)]));
    let ends = counts(&all, "ended", "status");
    assert_eq!(ends, numbers(&[("EXHAUSTED", 2), ("FAILED", 1), ("SUCCEEDED", 2)]));
    assert_eq!(counts(&all, "dead-letter", "status"), numbers(&[("EXHAUSTED", 2), ("FAILED", 1)]));
    assert_eq!(all.iter().filter(|event| event["kind"] == "retry-scheduled").count(), 4);

    let metrics = scrape(&service, "text/plain");
    for (outcome, count) in outcomes {
        let label = format!("outcome=\"{outcome}\"");
        assert_eq!(sum(&metrics, "retry_attempts_total", &label), count as f64, "{outcome}");
    }
    for (status, count) in ends {
        let label = format!("status=\"{status}\"");
        assert_eq!(sum(&metrics, "redrive_tasks_ended_total", &label), count as f64, "{status}");
    }
    assert_eq!(sum(&metrics, "dlq_messages_total", ""), 3.0);
}

#[test]
fn people_get_a_line_an_event_and_filters_select() {
    let (service, target) = (Service::start(), target());
    send(&service, &target, 404, 3);
    send(&service, &target, 200, 0);
    let id = events_once(&service, &["--kind", "dead-letter"], 1)[0]["taskId"].as_str().unwrap().to_owned();
    let ended = service.run(&["events", "--task", &id]).with(0).says(&[
        "Z accepted         billing",
        &format!("{id} 1/3: 404 Not Found after "),
        &format!("{id} FAILED (not-retryable) after 1 attempt"),
    ]);
    assert_eq!(ended.stdout.lines().count(), 4, "{}", ended.stdout);
    let kinds = events_once(&service, &["--dependency", "billing", "--kind", "attempt", "--kind", "ended"], 4);
    assert_eq!(kinds.len(), 4, "{kinds:?}");
    assert_eq!(events(&service, &["--dependency", "other"]), Vec::<Value>::new());
    service.run(&["events", "--kind", "none"]).with(1).says(&["kind must be one of accepted, attempt, "]);
    service.run(&["events", "--new"]).with(2);
}

#[test]
fn following_goes_on_after_a_restart_says_the_gap_and_ends_with_ctrl_c() {
    let (directory, target) = (tempfile::tempdir().unwrap(), target());
    let service = Service::start_in(directory.path(), &[]);
    send(&service, &target, 200, 0);
    let mut following = service.begin(&["events", "--follow", "--json", "--kind", "ended"]);
    following.stdout.wait_for(r#""status":"SUCCEEDED""#);
    send(&service, &target, 404, 3);
    following.stdout.wait_for(r#""status":"FAILED""#);
    let address = service.authority().to_owned();
    service.stop().with(0);
    following.stderr.wait_for("reconnecting for up to 5m");
    let service = Service::start_at(&address, directory.path(), &[]);
    following.stderr.wait_for("connected again");
    let gap: Value = serde_json::from_str(&following.stdout.wait_for(r#""kind":"gap""#)).unwrap();
    assert_eq!((&gap["reason"], &gap["missed"]), (&json!("restart"), &Value::Null));
    send(&service, &target, 503, 3);
    following.stdout.wait_for(r#""status":"EXHAUSTED""#);
    following.signal("INT");
    let ended = following.end().with(130);
    assert_eq!(ended.stdout.lines().count(), 4, "nothing is told twice: {}", ended.stdout);
}

#[test]
fn an_alert_is_told_when_it_begins_to_fire_and_when_it_is_over() {
    let service = Service::start();
    let mut following = service.begin(&["events", "--follow", "--kind", "alert", "--json"]);
    let mut next = |change: &str| -> Value {
        serde_json::from_str(&following.stdout.wait_for(&format!(r#""change":"{change}""#))).unwrap()
    };
    service.run(&["dependencies", "pause", "billing", "--reason", "moving"]).with(0);
    let fired = next("fired");
    let listed = service.run(&["alerts", "list", "--json"]).with(0).json();
    for field in ["rule", "severity", "dependency", "value", "why"] {
        assert_eq!(fired[field], listed["firing"][0][field], "{field}");
    }
    assert_eq!((&fired["rule"], &fired["dependency"]), (&json!("dependency-paused"), &json!("billing")));
    assert_eq!((&fired["taskId"], &fired["correlationId"]), (&Value::Null, &Value::Null));
    service.run(&["dependencies", "resume", "billing"]).with(0);
    let over = next("resolved");
    assert_eq!((&over["rule"], &over["dependency"]), (&json!("dependency-paused"), &json!("billing")));
    service.run(&["events", "--kind", "alert"]).with(0).says(&["dependency-paused (info): paused by ", "is over"]);
    following.signal("INT");
    following.end().with(130);
}

#[test]
fn only_what_is_new_is_shown_if_that_is_asked_for() {
    let (service, target) = (Service::start(), target());
    send(&service, &target, 200, 0);
    let mut following = service.begin(&["events", "--follow", "--new"]);
    // It is connected once it tells an event.
    let told = loop {
        send(&service, &target, 404, 3);
        if let Some(line) = following.stdout.poll_for(" 404 Not Found ") {
            break line;
        }
    };
    assert!(told.contains(" attempt "), "{told}");
    following.signal("INT");
    let ended = following.end().with(130);
    assert!(!ended.stdout.contains("SUCCEEDED"), "{}", ended.stdout);
}

#[test]
fn events_can_be_bounded_and_turned_off() {
    let (service, target) = (Service::start_with(&["--events", "2"]), target());
    send(&service, &target, 200, 0);
    assert_eq!(events_once(&service, &["--kind", "attempt,ended"], 2).len(), 2);
    assert_eq!(events(&service, &[]).len(), 2);
    let service = Service::start_with(&["--events", "0"]);
    service.run(&["events"]).with(1).says(&["this node keeps no events"]);
}
