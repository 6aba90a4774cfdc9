//! `redrive tasks watch`, and leaving it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::world::{Program, Reply, Service, Target, redrive};

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

/// A server that accepts a task and says then, one after the other, what a proxy says while it is restarted.
fn behind_a_proxy() -> Target {
    let next = AtomicUsize::new(0);
    Target::replying(move |arrival| {
        let task =
            |status: &str| json!({"taskId": "t-1", "status": status, "method": "POST", "targetUrl": "http://a/"});
        let html = |status| Reply { status, body: "<html>the upstream does not answer</html>".into() };
        let store =
            json!({"type": "/problems/unavailable", "title": "Unavailable", "status": 503, "detail": "the store"});
        match arrival.path.as_str() {
            "/retry-tasks" => Reply { status: 201, body: task("PENDING").to_string() },
            "/retry-tasks/t-1" => match next.fetch_add(1, Ordering::SeqCst) {
                0 => Reply { status: 200, body: task("PENDING").to_string() },
                1 => html(502),
                2 => html(504),
                3 => html(429),
                4 => html(404),
                5 => html(200),
                6 => Reply { status: 503, body: store.to_string() },
                _ => Reply { status: 200, body: task("SUCCEEDED").to_string() },
            },
            _ => Reply { status: 200, body: json!({"attempts": [], "nextCursor": null}).to_string() },
        }
    })
}

#[test]
fn a_wait_outlives_a_proxy_that_does_not_reach_the_server() {
    let (directory, server) = (tempfile::tempdir().unwrap(), behind_a_proxy());
    let mut command = redrive(directory.path(), &["send", "http://a/", "--wait"]);
    command.env("REDRIVE_SERVER", &server.url);
    let ended = Program::start(command).end().with(0);
    ended.says(&["lost contact with the server", "the server is back", "SUCCEEDED"]);
}

#[test]
fn a_refusal_is_not_answered_with_a_second_request() {
    let (directory, asked) = (tempfile::tempdir().unwrap(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&asked);
    let proxy = Target::replying(move |arrival| {
        count.fetch_add(1, Ordering::SeqCst);
        let tasks = json!({"tasks": [{"taskId": "01a", "status": "PENDING"}], "nextCursor": null});
        match arrival.path.contains("idPrefix") {
            true => Reply { status: 200, body: tasks.to_string() },
            false => Reply { status: 502, body: "<html>bad gateway</html>".into() },
        }
    });
    // The second request is made over the connection of the first one.
    let mut command = redrive(directory.path(), &["tasks", "show", "01"]);
    command.env("REDRIVE_SERVER", &proxy.url);
    Program::start(command).end().with(6);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[test]
fn a_proxy_that_does_not_reach_the_server_is_no_answer_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let proxy = Target::replying(|_| Reply { status: 502, body: "<html>bad gateway</html>".into() });
    let mut command = redrive(directory.path(), &["send", "http://a/", "--key", "order-7"]);
    command.env("REDRIVE_SERVER", &proxy.url);
    let ended = Program::start(command).end().with(6);
    ended.says(&[
        "502 Bad Gateway",
        "the answer of a proxy in front of the server",
        "with --key order-7 the same command",
    ]);
}
