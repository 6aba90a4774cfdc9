//! `redrive idempotency` and `redrive inbox`.

use serde_json::{Value, json};

use super::world;
use super::world::Service;

/// The store that forgets: what is shown does not depend on the store.
fn service() -> Service {
    Service::start_with(&["--store", "memory"])
}

fn post(service: &Service, path: &str, document: &Value) -> Value {
    let authority = service.url.strip_prefix("http://").unwrap();
    let (status, answer) = world::post(authority, path, &document.to_string());
    assert!([200, 201].contains(&status), "{status} {answer}");
    answer
}

fn reserve(service: &Service, key: &str) -> Value {
    let document = json!({ "requestHash": "0".repeat(64) });
    post(service, &format!("/idempotency-records/create-payment/{key}/reserve"), &document)
}

#[test]
fn records_are_listed_shown_and_counted() {
    let service = service();
    service.run(&["idempotency", "list"]).with(0).says(&["no records found"]);
    let owner = reserve(&service, "a%2Fb");
    reserve(&service, "c");
    let complete = json!({ "executionId": owner["executionId"], "epoch": 1, "resourceType": "payment", "resourceId": "pay_1",
        "response": { "status": 201, "bodyText": "done" } });
    post(&service, "/idempotency-records/create-payment/a%2Fb/complete", &complete);

    let columns = ["OPERATION", "STATE", "create-payment", "a/b", "SUCCEEDED", "IN_PROGRESS"];
    service.run(&["idempotency", "list"]).with(0).says(&columns);
    let listed = |words: &[&str]| {
        let document = service.run(&[&["idempotency", "list", "--json"], words].concat()).with(0).json();
        let records = document["records"].as_array().unwrap().clone();
        records.iter().map(|record| record["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&[]), ["a/b", "c"]);
    assert_eq!(listed(&["--state", "in_progress"]), ["c"]);
    assert_eq!(listed(&["--operation", "refund"]), [""; 0]);
    assert_eq!(listed(&["--older-than", "1h"]), [""; 0]);
    service.run(&["idempotency", "list", "--limit", "1"]).with(0).says(&["(there are more; use --limit N or --all)"]);

    let fields = ["a/b", "SUCCEEDED", "epoch 1", "payment pay_1", "201, 4 bytes", "1-SUCCEEDED-"];
    service.run(&["idempotency", "show", "create-payment", "a/b"]).with(0).says(&fields);
    let shown = service.run(&["idempotency", "show", "create-payment", "a/b", "--json"]).with(0).json();
    assert_eq!(shown["response"]["bodyBase64"], "ZG9uZQ==");
    service.run(&["idempotency", "show", "create-payment", "none"]).with(5).says(&["create-payment/none"]);

    let numbers = ["FAILED RETRYABLE", "create-payment", "reservations", "takeovers", "submissions replayed"];
    service.run(&["idempotency", "stats"]).with(0).says(&numbers);
    let stats = service.run(&["idempotency", "stats", "--json"]).with(0).json();
    assert_eq!((&stats["totals"]["reservations"], &stats["operations"][0]["succeeded"]), (&json!(2), &json!(1)));
}

#[test]
fn a_record_is_deleted_once_it_was_seen_or_with_yes() {
    let service = service();
    let owner = reserve(&service, "k");
    let record = ["idempotency", "delete", "create-payment", "k"];
    let ended = service.run(&record).with(2).says(&["IN_PROGRESS", "nothing was deleted", "--etag 1-IN_PROGRESS-"]);
    let etag = ended.stderr.split("--etag ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let release = json!({ "executionId": owner["executionId"], "epoch": 1 });
    post(&service, "/idempotency-records/create-payment/k/complete", &release);
    service.run(&[&record[..], &["--etag", &etag]].concat()).with(1).says(&["The record has changed"]);
    let shown = service.run(&[&record[..], &["--json"]].concat()).with(2).json();
    assert_eq!(shown["state"], "SUCCEEDED");
    service.run(&[&record[..], &["--yes"]].concat()).with(0).says(&["create-payment k deleted"]);
    service.run(&[&record[..], &["--yes"]].concat()).with(5);
    assert_eq!(reserve(&service, "k")["epoch"], 2);
    let etag = service
        .run(&record)
        .with(2)
        .stderr
        .split("--etag ")
        .nth(1)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .to_owned();
    assert_eq!(service.run(&[&record[..], &["--etag", &etag, "--json"]].concat()).with(0).json(), json!({}));
}

#[test]
fn inboxes_are_counted() {
    let service = service();
    service.run(&["inbox", "stats"]).with(0).says(&["no inboxes", "answered: 0 new"]);
    post(&service, "/inboxes/billing/events", &json!({ "events": ["a", "b", "a"] }));
    post(&service, "/inboxes/billing/events/c", &json!({ "mode": "begin" }));
    service.run(&["inbox", "stats"]).with(0).says(&[
        "CONSUMER",
        "billing",
        "answered: 3 new, 1 duplicate, 0 in progress",
    ]);
    let stats = service.run(&["inbox", "stats", "--json"]).with(0).json();
    assert_eq!(stats["inboxes"], json!([{ "consumer": "billing", "seen": 2, "inProgress": 1 }]));
}
