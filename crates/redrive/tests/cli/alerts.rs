//! Alerts of the real service, at a real receiver.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use super::world::{PATIENCE, Reply, Service, Target, post};

/// The rules that this test waits for, without their waits.
const RULES: &str = r#"
[guards]
breaker_open = "1s"
breaker_longest_open = "1s"
[alerts]
wait = "0s"
interval = "0s"
[alerts.rules.dead-letter-rate]
wait = "0s"
keep = "0s"
[alerts.rules.breaker-open]
keep = "0s"
"#;

/// A configuration that tells a webhook of these rules.
fn configure(directory: &Path, receiver: &Target, rules: &str) {
    let sink = format!(
        "[alerts.sinks.ops]\nkind = \"webhook\"\nurl = \"{}/hook?token=s3cret\"\nrules = {rules}\n",
        receiver.url
    );
    std::fs::write(directory.join("redrive.toml"), format!("{RULES}{sink}")).unwrap();
}

/// A dependency whose answer can be changed.
fn dependency(status: u16) -> (Target, Arc<AtomicU16>) {
    let answers = Arc::new(AtomicU16::new(status));
    let status = answers.clone();
    let reply = move |_: &_| Reply { status: status.load(Ordering::Relaxed), body: String::new() };
    (Target::replying(reply), answers)
}

/// The next notification about a rule.
fn told(receiver: &Target, rule: &str) -> Value {
    loop {
        let document: Value = serde_json::from_slice(&receiver.arrival().body).unwrap();
        if document["rule"] == rule {
            return document;
        }
    }
}

/// The notifications so far.
#[derive(Default)]
struct Seen(Vec<Value>);

impl Seen {
    /// Receives notifications until `is_enough`.
    fn until(&mut self, receiver: &Target, is_enough: impl Fn(&Seen) -> bool) {
        while !is_enough(self) {
            self.0.push(serde_json::from_slice(&receiver.arrival().body).unwrap());
        }
    }

    /// Those about a rule.
    fn of(&self, rule: &str) -> Vec<Value> {
        self.0.iter().filter(|document| document["rule"] == rule).cloned().collect()
    }
}

/// Asks until `is_so`.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what} did not happen");
    }
}

fn send(service: &Service, target: &Target, count: usize, code: i32) {
    for _ in 0..count {
        service.run(&["send", &target.url, "--dependency", "billing", "--set", "maxAttempts=1", "--wait"]).with(code);
    }
}

#[test]
fn a_dependency_that_dies_is_told_once_and_resolved_when_it_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let (target, answers) = dependency(200);
    let receiver = Target::answering(&[200]);
    configure(directory.path(), &receiver, r#"["breaker-open", "dead-letter-rate", "dead-letter"]"#);
    let service = Service::start_in(directory.path(), &["--config", "redrive.toml"]);
    send(&service, &target, 15, 0);
    assert_eq!(receiver.unseen(), 0, "all is well");

    answers.store(503, Ordering::Relaxed);
    send(&service, &target, 10, 3);
    let mut seen = Seen::default();
    seen.until(&receiver, |seen| !seen.of("breaker-open").is_empty());
    let opened = seen.of("breaker-open")[0].clone();
    assert_eq!(
        (&opened["status"], &opened["severity"], &opened["firing"]),
        (&json!("firing"), &json!("critical"), &json!(1))
    );
    assert_eq!(
        (&opened["alerts"][0]["dependency"], &opened["alerts"][0]["tenant"]),
        (&json!("billing"), &json!("default"))
    );
    service.run(&["report"]).with(1).says(&["red: something needs attention", "40 % of 25 tasks became dead letters"]);
    service.run(&["alerts", "list"]).with(0).says(&[
        "breaker-open",
        "dead-letter-rate",
        "critical",
        "sinks: ops (webhook)",
    ]);

    answers.store(200, Ordering::Relaxed);
    // Enough that 10 dead letters are less than half a percent.
    let task = json!({ "targetUrl": target.url, "method": "GET", "dependency": "billing" });
    let batch = json!({ "tasks": vec![task; 1_000] }).to_string();
    for _ in 0..3 {
        assert_eq!(post(service.authority(), "/retry-tasks/batch", &batch).0, 200);
    }
    let mut sent = 25;
    until("the delivery of all tasks", || {
        sent += target.unseen();
        sent >= 3_025
    });
    until("a green report", || service.run(&["report", "--json"]).json()["health"] == "green");
    until("the end of the alerts", || {
        let list = service.run(&["alerts", "list", "--json"]).with(0).json();
        let firing = list["firing"].as_array().unwrap().iter().map(|alert| alert["rule"].clone()).collect::<Vec<_>>();
        !firing.contains(&json!("breaker-open")) && !firing.contains(&json!("dead-letter-rate"))
    });
    let is_over = |told: Vec<Value>| told.last().is_some_and(|last| last["status"] == "resolved");
    seen.until(&receiver, |seen| is_over(seen.of("breaker-open")) && is_over(seen.of("dead-letter-rate")));
    let open = seen.of("breaker-open");
    assert_eq!(open.len(), 2, "one when it opened, one when it closed: {open:#?}");
    let dead_letters = seen.of("dead-letter");
    assert_eq!(dead_letters.len(), 1, "{dead_letters:#?}");
    assert_eq!(
        (&dead_letters[0]["status"], &dead_letters[0]["alerts"][0]["dependency"]),
        (&json!("firing"), &json!("billing"))
    );
    assert_eq!(
        seen.0.len(),
        open.len() + dead_letters.len() + seen.of("dead-letter-rate").len(),
        "only what it asked for"
    );

    let ended = service.stop();
    assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
}

#[test]
fn a_dead_letter_is_told_even_if_the_process_is_killed_before_its_sink_is() {
    let directory = tempfile::tempdir().unwrap();
    let (target, _) = dependency(404);
    let receiver = Target::answering(&[200]);
    configure(directory.path(), &receiver, r#"["dead-letter"]"#);
    // Longer than the test: nothing is told before the process is killed.
    let config = directory.path().join("redrive.toml");
    let text = std::fs::read_to_string(&config).unwrap().replace("wait = \"0s\"\ninterval", "wait = \"15s\"\ninterval");
    std::fs::write(&config, text).unwrap();
    let service = Service::start_in(directory.path(), &["--config", "redrive.toml"]);
    send(&service, &target, 1, 3);
    service.program.signal("KILL");
    service.program.end();
    assert_eq!(receiver.unseen(), 0);

    configure(directory.path(), &receiver, r#"["dead-letter"]"#);
    let service = Service::start_in(directory.path(), &["--config", "redrive.toml"]);
    let told = told(&receiver, "dead-letter");
    assert_eq!(told["alerts"][0]["why"], "1 dead letter appeared in the last 5 minutes");
    service.stop();
}

#[test]
fn no_moment_of_death_loses_a_dead_letters_alert() {
    let directory = tempfile::tempdir().unwrap();
    let (target, _) = dependency(404);
    let receiver = Target::answering(&[200]);
    configure(directory.path(), &receiver, r#"["dead-letter"]"#);
    let mut seen = Seen::default();
    let is_named = |seen: &Seen, name: &str| {
        let alerts = seen.0.iter().flat_map(|told| told["alerts"].as_array().unwrap());
        alerts.into_iter().any(|alert| alert["dependency"] == name)
    };
    for name in ["at-once", "when-it-fires", "when-it-was-told", "at-once-again"] {
        let service = Service::start_in(directory.path(), &["--config", "redrive.toml"]);
        service.run(&["send", &target.url, "--dependency", name, "--set", "maxAttempts=1", "--wait"]).with(3);
        match name {
            "when-it-fires" => until("the alert", || {
                let list = service.run(&["alerts", "list", "--json"]).with(0).json();
                list["firing"].as_array().unwrap().iter().any(|alert| alert["dependency"] == name)
            }),
            "when-it-was-told" => seen.until(&receiver, |seen| is_named(seen, name)),
            _ => {}
        }
        service.program.kill();
    }
    let service = Service::start_in(directory.path(), &["--config", "redrive.toml"]);
    let names = ["at-once", "when-it-fires", "when-it-was-told", "at-once-again"];
    seen.until(&receiver, |seen| names.iter().all(|name| is_named(seen, name)));
    service.stop();
}

#[test]
fn a_stop_tells_what_waits() {
    let directory = tempfile::tempdir().unwrap();
    let (target, _) = dependency(404);
    let receiver = Target::answering(&[200]);
    configure(directory.path(), &receiver, r#"["dead-letter"]"#);
    let config = directory.path().join("redrive.toml");
    let text = std::fs::read_to_string(&config).unwrap().replace("wait = \"0s\"\ninterval", "wait = \"15s\"\ninterval");
    std::fs::write(&config, text).unwrap();
    let service = Service::start_in(directory.path(), &["--config", "redrive.toml"]);
    send(&service, &target, 1, 3);
    service.stop();
    // The notification is durable; the next process delivers it, and has nothing to tell of itself.
    let service = Service::start_in(directory.path(), &["--config", "redrive.toml"]);
    assert_eq!(told(&receiver, "dead-letter")["firing"], 1);
    service.run(&["alerts", "list"]).with(0).says(&["nothing fires"]);
    service.stop();
}

#[test]
fn the_command_line_silences_and_tests_sinks() {
    let directory = tempfile::tempdir().unwrap();
    let receiver = Target::answering(&[200, 500]);
    configure(directory.path(), &receiver, r#"["dead-letter"]"#);
    let service = Service::start_in(directory.path(), &["--config", "redrive.toml"]);
    service.run(&["alerts", "test", "ops"]).with(0).says(&["ops took it: 200"]);
    service.run(&["alerts", "test", "ops"]).with(1).says(&["ops did not take it: it answered 500"]);
    service.run(&["alerts", "test", "nobody"]).with(5);
    let words = ["alerts", "silence", "--dependency", "billing", "--for", "2h", "--reason", "maintenance", "--json"];
    let silence = service.run(&words).with(0).json();
    let id = silence["silenceId"].as_str().unwrap();
    service.run(&["alerts", "list"]).with(0).says(&["nothing fires", id, "billing", "maintenance"]);
    service.run(&["alerts", "silence", "--rule", "retries", "--for", "1h"]).with(1);
    service.run(&["alerts", "end-silence", id]).with(0).says(&["has ended"]);
    service.run(&["alerts", "end-silence", id]).with(5);
    service.stop();
}
