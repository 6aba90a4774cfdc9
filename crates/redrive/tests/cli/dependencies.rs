//! `redrive dependencies`.

use serde_json::json;

use super::world::{PATIENCE, Service, Target};

/// The origin of a target.
fn origin(target: &Target) -> String {
    target.url.trim_end_matches('/').split('/').take(3).collect::<Vec<_>>().join("/")
}

#[test]
fn a_dependency_is_listed_shown_and_watched() {
    let (service, target) = (Service::start(), Target::answering(&[200]));
    service.run(&["dependencies", "list"]).with(0).says(&["no dependencies"]);
    service.send(&[&target.url, "--wait"]);
    let name = origin(&target);
    service.run(&["dependencies", "list"]).with(0).says(&["DEPENDENCY", &name, "ok", "0 of 1", "10"]);
    service.run(&["dependencies", "show", &name]).with(0).says(&[
        "Nothing is held back.",
        "closed",
        "10 left; in 30s: 1 first attempt, 0 retries, 0 refunded",
        "0 of 1 failed",
        "1, 0 failed",
        "0 due, 0 due later",
    ]);
    let document = service.run(&["dependencies", "show", &name, "--json"]).with(0).json();
    assert_eq!((&document["dependency"], &document["state"]), (&json!(name), &json!("ok")));
    let list = service.run(&["dependencies", "list", "--json"]).with(0).json();
    assert_eq!(list["dependencies"][0]["dependency"], name);
    service.run(&["dependencies", "watch", "--once"]).with(0).says(&[
        "1 dependency\n",
        "CALLS/S",
        "TREND",
        &name,
        "ok",
        "0.0",
    ]);
    let view = service.run(&["dependencies", "watch", "--once", "--json"]).with(0).json();
    assert_eq!(view["dependencies"][0]["dependency"], name);
}

#[test]
fn a_paused_dependency_gets_nothing_until_it_is_resumed_also_across_a_restart() {
    let (directory, target) = (tempfile::tempdir().unwrap(), Target::answering(&[200]));
    let service = Service::start_in(directory.path(), &[]);
    let name = origin(&target);
    service
        .run(&["dependencies", "pause", &name, "--reason", "moving"])
        .with(0)
        .says(&[&format!("{name} paused: Paused by local: moving. Nothing is sent until it is resumed.")]);
    let id = service.send(&[&target.url]);
    service.run(&["tasks", "show", &id]).with(0).says(&["PENDING", "waits for", "its dependency to be resumed"]);
    let backlog = "1 due, 0 due later";
    service.run(&["dependencies", "show", &name]).with(0).says(&["paused", "by local since 20", ": moving", backlog]);
    service.stop();

    let service = Service::start_in(directory.path(), &[]);
    assert_eq!(service.task(&id)["waitingFor"], "pause");
    assert_eq!(target.arrived().len(), 0);
    service.run(&["dependencies", "resume", &name]).with(0).says(&[&name]);
    service.run(&["tasks", "watch", &id, "--timeout", &format!("{}s", PATIENCE.as_secs())]).with(0);
}

#[test]
fn a_breaker_is_opened_closed_and_reset_by_hand() {
    let service = Service::start();
    let run = |words: &[&str]| service.run(&[&["dependencies"], words].concat());
    run(&["open", "billing", "--for", "10m", "--reason", "audit"])
        .with(0)
        .says(&["billing open: The circuit breaker is open because it was opened by local: audit."]);
    run(&["show", "billing"]).with(0).says(&["held open", "(in 10m)", "by local since"]);
    run(&["list"]).with(0).says(&["billing", "open", "(in 10m)"]);
    run(&["close", "billing"]).with(0).says(&["billing ok: Nothing is held back."]);
    run(&["open", "billing"]).with(0).says(&["Nothing is sent until it is closed."]);
    run(&["reset", "billing"]).with(0).says(&["billing ok"]);
}

#[test]
fn limits_are_set_and_removed() {
    let service = Service::start();
    let run = |words: &[&str]| service.run(&[&["dependencies"], words].concat());
    run(&["limits", "billing", "--concurrency", "5"]).with(0);
    run(&["show", "billing"]).with(0).says(&["limits", "5, by local since", "0 of 5"]);
    run(&["limits", "billing", "--min", "2", "--max", "9"]).with(0);
    run(&["show", "billing"]).with(0).says(&["at least 2, at most 9, by local"]);
    let document = run(&["limits", "billing", "--remove", "--json"]).with(0).json();
    assert_eq!(document["controls"]["limits"], json!(null));
}

#[test]
fn mistakes_are_explained() {
    let service = Service::start();
    for (words, code, expected) in [
        (&["show", "nothere"][..], 5, "this node knows no task of dependency \"nothere\""),
        (&["resume", "nothere"], 5, "check the spelling"),
        (&["pause", "a b"], 1, "dependency must be visible ASCII characters, got ' '"),
        (&["limits", "x"], 2, "--concurrency <N>"),
        (&["limits", "x", "--concurrency", "0"], 2, "0 is not in 1..=100000"),
        (&["limits", "x", "--concurrency", "2", "--max", "3"], 2, "cannot be used with"),
        (&["limits", "x", "--min", "4", "--max", "3"], 1, "minConcurrency must be at most maxConcurrency (3)"),
        (&["open", "x", "--until", "yesterday"], 2, "an RFC 3339 time such as"),
        (&["open", "x", "--until", "2020-01-01T00:00:00Z"], 1, "untilMs must be in the future"),
        (&["open", "x", "--for", "31d"], 1, "forMs must be from 1 to"),
    ] {
        service.run(&[&["dependencies"], words].concat()).with(code).says(&[expected]);
    }
    let off = Service::start_with(&["--breaker", "off"]);
    off.run(&["dependencies", "open", "x"]).with(1).says(&["the circuit breaker is turned off on this server"]);
}
