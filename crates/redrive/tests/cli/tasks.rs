//! `redrive tasks show|cancel|retry-now|replay|attempts`.

use serde_json::json;

use super::world::{Service, Target};

const NOBODY: &str = "01932c07-4b70-7f57-a123-456789abcdef";

#[test]
fn show_tells_all_that_is_known_of_a_task() {
    let (service, target) = (Service::start(), Target::answering(&[503, 200]));
    let words = ["-d", "hello", "-H", "Authorization: Bearer x", "--label", "team=pay", "--set", "initialDelayMs=1"];
    let id = service.send(&[&[target.url.as_str(), "--wait"], &words[..]].concat());
    service.run(&["tasks", "show", &id]).with(0).says(&[
        &id,
        "SUCCEEDED",
        "2 of 6",
        "http-status: ",
        &format!("POST {}", target.url),
        "Authorization: ***",
        "5 bytes",
        "default v1",
        "initialDelayMs: 1",
        "team=pay",
        "200 OK",
        "answer 2",
        "Z (",
        " ago)",
    ]);
}

#[test]
fn attempts_are_a_table_and_json() {
    let (service, target) = (Service::start(), Target::answering(&[503, 200]));
    let id = service.send(&[&target.url, "--wait", "--set", "initialDelayMs=1"]);
    service.run(&["tasks", "attempts", &id]).with(0).says(&[
        "ATTEMPT  OUTCOME",
        "1/6      retryable",
        "503",
        "2/6      success",
        "200",
        "http-status: ",
    ]);
    let document = service.run(&["tasks", "attempts", &id, "--json"]).with(0).json();
    let outcomes: Vec<_> =
        document["attempts"].as_array().unwrap().iter().map(|attempt| attempt["outcome"].clone()).collect();
    assert_eq!(outcomes, [json!("retryable"), json!("success")]);
    assert!(document["attempts"].as_array().unwrap().iter().all(|attempt| attempt["taskId"] == *id), "{document:#}");
}

#[test]
fn a_cancelled_task_is_never_sent() {
    let (service, target) = (Service::start(), Target::answering(&[200]));
    let id = service.send(&[&target.url, "--delay", "1h"]);
    service.run(&["tasks", "show", &id]).with(0).says(&["PENDING", "next attempt", "Z (in 1h)"]);
    service.run(&["tasks", "cancel", &id]).with(0).says(&[&format!("{id} CANCELLED, attempt 0 of 6")]);
    service.run(&["tasks", "watch", &id]).with(3).says(&["CANCELLED after 0 attempts"]);
    service.run(&["tasks", "cancel", &id]).with(1).says(&["error: The task has already ended", "CANCELLED"]);
    service.run(&["tasks", "retry-now", &id]).with(1).says(&["error: The task has already ended"]);
    assert_eq!(target.unseen(), 0);
}

#[test]
fn retry_now_brings_a_waiting_task_forward() {
    let (service, target) = (Service::start(), Target::answering(&[200]));
    let id = service.send(&[&target.url, "--delay", "1h"]);
    let task = service.run(&["tasks", "retry-now", &id, "--json"]).with(0).json();
    assert_eq!(task["taskId"], json!(id));
    service.run(&["tasks", "watch", &id]).with(0).says(&["SUCCEEDED after 1 attempt"]);
}

#[test]
fn replay_puts_a_dead_letter_back_to_work() {
    let (service, target) = (Service::start(), Target::answering(&[404, 503, 200]));
    let id = service.send(&[&target.url, "--set", "initialDelayMs=1", "--key", "order-7"]);
    service.run(&["tasks", "watch", &id]).with(3);
    service.run(&["tasks", "show", &id]).with(0).says(&["FAILED (not-retryable)", "1 of 6"]);
    let task = service.run(&["tasks", "replay", &id, "--json"]).with(0).json();
    assert_eq!((&task["taskId"], &task["run"], &task["attemptInRun"]), (&json!(id), &json!(2), &json!(0)));
    service.run(&["tasks", "watch", &id]).with(0).says(&[
        "attempt 1/6 (earlier run): 404 Not Found",
        "attempt 1/6 (run 2, 2 in all): 503 Service Unavailable",
        "attempt 2/6 (run 2, 3 in all): 200 OK",
        "SUCCEEDED after 2 attempts (run 2, 3 in all)",
    ]);
    service.run(&["tasks", "attempts", &id]).with(0).says(&[
        "ATTEMPT  IN ALL  OUTCOME",
        "1/6      1       permanent",
        "1/6      2       retryable",
        "2/6      3       success",
    ]);
    let document = service.run(&["tasks", "attempts", &id, "--json"]).with(0).json();
    let numbers: Vec<_> = document["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| (attempt["attemptNumber"].as_u64().unwrap(), attempt["attemptInRun"].as_u64().unwrap()))
        .collect();
    assert_eq!(numbers, [(1, 1), (2, 1), (3, 2)]);
    service.run(&["tasks", "show", &id]).with(0).says(&["SUCCEEDED", "2 of 6 in run 2, 3 in all", "order-7"]);
    service.run(&["tasks", "replay", &id]).with(1).says(&["error: The task is not a dead letter", "is SUCCEEDED"]);
}

#[test]
fn replay_says_where_the_task_stands_in_a_line() {
    let (service, target) = (Service::start(), Target::answering(&[404, 200]));
    let id = service.send(&[&target.url]);
    service.run(&["tasks", "watch", &id]).with(3);
    service.run(&["tasks", "replay", &id]).with(0).says(&[&format!("{id} PENDING, attempt 0 of 6 (run 2, 1 in all)")]);
    service.run(&["tasks", "watch", &id]).with(0);
}

#[test]
fn a_task_in_flight_can_be_cancelled_but_not_brought_forward() {
    let (service, target) = (Service::start(), Target::holding());
    let id = service.send(&[&target.url]);
    target.arrival();
    service.run(&["tasks", "retry-now", &id]).with(1).says(&["error: An attempt is under way"]);
    service.run(&["tasks", "cancel", &id]).with(0).says(&["IN_FLIGHT (cancel requested), attempt 1 of 6"]);
    target.release();
    service.run(&["tasks", "watch", &id]).with(0).says(&["SUCCEEDED after 1 attempt"]);
}

#[test]
fn an_unknown_task_ends_with_5() {
    let service = Service::start();
    for command in ["show", "watch", "cancel", "retry-now", "replay", "attempts"] {
        service.run(&["tasks", command, NOBODY]).with(5).says(&["error: No such task", NOBODY]);
        service.run(&["tasks", command, NOBODY, "--json"]).with(5);
    }
}
