//! `redrive tasks watch`, and leaving it.

use serde_json::{Value, json};

use super::world::{Service, Target};

#[test]
fn events_are_a_line_of_json_each() {
    let (service, target) = (Service::start(), Target::answering(&[503, 200]));
    let id = service.send(&[&target.url, "--wait", "--set", "initialDelayMs=1"]);
    let ended = service.run(&["tasks", "watch", &id, "--json"]).with(0);
    let events: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 3, "{}", ended.stdout);
    assert_eq!(events[0]["attempt"]["responseStatus"], json!(503));
    assert_eq!(events[1]["attempt"]["responseStatus"], json!(200));
    assert_eq!(events[2]["task"]["status"], json!("SUCCEEDED"));
}

#[test]
fn attempts_are_shown_as_they_happen() {
    let (service, target) = (Service::start(), Target::holding());
    let id = service.send(&[&target.url, "--set", "attemptTimeoutMs=200", "--set", "initialDelayMs=1"]);
    let mut watching = service.begin(&["tasks", "watch", &id]);
    watching.stdout.wait_for("attempt 1/6: read-timeout after ");
    target.release();
    target.release();
    watching.end().with(0).says(&["200 OK", "SUCCEEDED after "]);
}

#[test]
fn a_watch_has_a_limit() {
    let (service, target) = (Service::start(), Target::answering(&[200]));
    let id = service.send(&[&target.url, "--delay", "1h"]);
    service.run(&["tasks", "watch", &id, "--timeout", "20ms"]).with(4).says(&["not ended after 20ms"]);
    let ended = service.run(&["send", &target.url, "--delay", "1h", "--wait=1ms", "--json"]).with(4);
    assert_eq!(ended.json()["status"], json!("PENDING"));
}

#[test]
fn leaving_ends_with_130_and_leaves_the_task_alone() {
    let (service, target) = (Service::start(), Target::holding());
    let mut sending = service.begin(&["send", &target.url, "--wait"]);
    let line = sending.stdout.wait_for("accepted ");
    let id = line.split(' ').nth(1).unwrap().to_owned();
    target.arrival();
    sending.stdout.wait_for("6 attempts over");
    sending.signal("INT");
    sending.end().with(130).says(&["interrupted; the task goes on: ", &format!("tasks watch {id}")]);
    target.release();
    service.run(&["tasks", "watch", &id]).with(0).says(&["SUCCEEDED after 1 attempt"]);
}

#[test]
fn a_watch_outlives_a_restart_of_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let target = Target::answering(&[200]);
    let service = Service::start_in(directory.path(), &[]);
    let id = service.send(&[&target.url, "--delay", "1h"]);
    let mut watching = service.begin(&["tasks", "watch", &id, "--json"]);
    let address = service.authority().to_owned();
    watching.stdout.wait_for("\"status\":\"PENDING\"");
    service.stop().with(0);
    watching.stderr.wait_for("lost contact with the server; the task was accepted and goes on");
    let service = Service::start_at(&address, directory.path(), &[]);
    service.run(&["tasks", "retry-now", &id]).with(0);
    watching.end().with(0).says(&["\"status\":\"SUCCEEDED\""]);
}
