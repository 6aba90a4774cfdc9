//! The owner of a record: only it changes the record, until another execution takes over.

use std::time::Duration;

use serde_json::{Value, json};

use crate::records::{ME, OTHER, act, hash, reserve, show};
use crate::world::{Ask, World};

const START: u64 = 1_700_000_000_000;

fn owner(execution: &str, epoch: u64) -> Value {
    json!({ "executionId": execution, "epoch": epoch })
}

fn owner_with(execution: &str, epoch: u64, more: Value) -> Value {
    let mut document = owner(execution, epoch);
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    document
}

#[tokio::test]
async fn after_the_lease_another_execution_takes_over_and_the_one_before_is_fenced() {
    let world = World::start().await;
    reserve(&world, ME).await;
    world.clock.advance(Duration::from_millis(59_999));
    reserve(&world, OTHER).await.problem(409, "idempotency-in-progress");
    world.clock.advance(Duration::from_millis(1));
    let taken_over = reserve(&world, OTHER).await;
    let previous = json!({ "executionId": ME, "epoch": 1, "state": "IN_PROGRESS", "outcome": "unknown" });
    assert_eq!(
        (taken_over.status, &taken_over.json()["epoch"], &taken_over.json()["previous"]),
        (201, &json!(2), &previous)
    );

    let before = show(&world).await.json();
    for (action, document) in [
        ("complete", owner(ME, 1)),
        ("complete", owner(ME, 2)),
        ("complete", owner(OTHER, 1)),
        ("fail", owner_with(ME, 1, json!({ "retryable": true }))),
        ("renew", owner(ME, 1)),
        ("release", owner(ME, 1)),
    ] {
        act(&world, action, document.clone()).await.problem(409, "fenced");
    }
    assert_eq!(show(&world).await.json(), before);
    assert_eq!(act(&world, "complete", owner(OTHER, 2)).await.status, 200);
    act(&world, "complete", owner(ME, 1)).await.problem(409, "fenced");
}

#[tokio::test]
async fn an_owner_whose_lease_is_over_may_still_report_if_no_other_has_taken_over() {
    let world = World::start().await;
    reserve(&world, ME).await;
    world.clock.advance(Duration::from_secs(3_600));
    assert_eq!(act(&world, "complete", owner(ME, 1)).await.status, 200);
    assert_eq!(reserve(&world, OTHER).await.json()["outcome"], "replay");
}

#[tokio::test]
async fn repeating_a_reservation_with_its_execution_id_is_safe() {
    let world = World::start().await;
    reserve(&world, ME).await;
    world.clock.advance(Duration::from_secs(1));
    let again = reserve(&world, ME).await;
    let expected = json!({ "outcome": "reserved", "executionId": ME, "epoch": 1, "leaseUntil": START + 61_000 });
    assert_eq!((again.status, again.json()), (201, expected));
}

#[tokio::test]
async fn a_retryable_failure_lets_the_next_caller_execute_and_tells_it_of_the_failure() {
    let world = World::start().await;
    reserve(&world, ME).await;
    let failed = act(&world, "fail", owner_with(ME, 1, json!({ "retryable": true }))).await;
    assert_eq!((failed.status, &failed.json()["state"]), (200, &json!("FAILED_RETRYABLE")));
    let next = reserve(&world, OTHER).await.json();
    let previous = json!({ "executionId": ME, "epoch": 1, "state": "FAILED_RETRYABLE", "outcome": "unknown" });
    assert_eq!((&next["epoch"], &next["previous"]), (&json!(2), &previous));
}

#[tokio::test]
async fn a_final_failure_is_replayed() {
    let world = World::start().await;
    reserve(&world, ME).await;
    let document = owner_with(
        ME,
        1,
        json!({ "retryable": false, "response": { "status": 402, "bodyText": "no" }, "resourceType": "attempt", "resourceId": "7" }),
    );
    assert_eq!(act(&world, "fail", document).await.json()["state"], "FAILED_FINAL");
    let replay = reserve(&world, OTHER).await;
    assert_eq!((replay.status, &replay.json()["state"]), (200, &json!("FAILED_FINAL")));
    assert_eq!((&replay.json()["response"]["bodyBase64"], &replay.json()["resourceId"]), (&json!("bm8="), &json!("7")));
}

#[tokio::test]
async fn a_lease_can_be_renewed() {
    let world = World::start().await;
    reserve(&world, ME).await;
    world.clock.advance(Duration::from_secs(50));
    let renewed = act(&world, "renew", owner_with(ME, 1, json!({ "leaseMs": 20_000 }))).await;
    assert_eq!((renewed.status, &renewed.json()["leaseUntil"]), (200, &json!(START + 70_000)));
    assert_eq!(renewed.header("etag"), Some("\"1-IN_PROGRESS-1700000050000-1700000070000\""));
    world.clock.advance(Duration::from_millis(19_999));
    reserve(&world, OTHER).await.problem(409, "idempotency-in-progress");
    // The setting applies if no lease is given.
    let renewed = act(&world, "renew", owner(ME, 1)).await;
    assert_eq!(renewed.json()["leaseUntil"], START + 129_999);
    let refused = act(&world, "renew", owner_with(ME, 1, json!({ "leaseMs": 999 }))).await;
    assert_eq!(refused.problem(422, "invalid-value")["field"], "leaseMs");
}

#[tokio::test]
async fn a_released_record_is_absent_and_its_epoch_goes_on() {
    let world = World::start().await;
    reserve(&world, ME).await;
    for _ in 0..2 {
        assert_eq!(act(&world, "release", owner(ME, 1)).await.json()["state"], "RELEASED");
    }
    show(&world).await.problem(404, "record-not-found");
    act(&world, "complete", owner(OTHER, 1)).await.problem(404, "record-not-found");
    let next = reserve(&world, OTHER).await.json();
    assert_eq!((&next["epoch"], next.get("previous")), (&json!(2), None));
}

#[tokio::test]
async fn an_end_can_be_repeated_but_not_changed() {
    let world = World::start().await;
    reserve(&world, ME).await;
    let complete = owner_with(ME, 1, json!({ "response": { "status": 200, "bodyText": "a" } }));
    let first = act(&world, "complete", complete.clone()).await;
    world.clock.advance(Duration::from_secs(1));
    let again = act(&world, "complete", complete).await;
    assert_eq!((again.status, again.json()), (200, first.json()));
    for (action, document) in [
        ("complete", owner_with(ME, 1, json!({ "response": { "status": 200, "bodyText": "b" } }))),
        ("fail", owner_with(ME, 1, json!({ "retryable": true }))),
        ("renew", owner(ME, 1)),
        ("release", owner(ME, 1)),
    ] {
        let problem = act(&world, action, document).await.problem(409, "already-ended");
        assert!(problem["detail"].as_str().unwrap().contains("SUCCEEDED"), "{problem:#}");
    }
}

#[tokio::test]
async fn what_does_not_exist_cannot_be_changed() {
    let world = World::start().await;
    for (action, document) in [
        ("complete", owner(ME, 1)),
        ("fail", owner_with(ME, 1, json!({ "retryable": false }))),
        ("renew", owner(ME, 1)),
        ("release", owner(ME, 1)),
    ] {
        act(&world, action, document).await.problem(404, "record-not-found");
    }
}

#[tokio::test]
async fn invalid_results_are_named() {
    let world = World::start().await;
    reserve(&world, ME).await;
    let response = |value: Value| owner_with(ME, 1, json!({ "response": value }));
    let retryable = |more: Value| {
        let mut document = owner_with(ME, 1, json!({ "retryable": true }));
        document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        document
    };
    for (action, document, status, name, field) in [
        ("complete", json!({ "epoch": 1 }), 400, "invalid-document", "executionId"),
        ("complete", json!({ "executionId": "me", "epoch": 1 }), 422, "invalid-value", "executionId"),
        ("complete", owner(ME, 0), 422, "invalid-value", "epoch"),
        ("complete", response(json!({ "status": 99 })), 422, "invalid-value", "response.status"),
        ("complete", response(json!({ "status": 600 })), 422, "invalid-value", "response.status"),
        (
            "complete",
            response(json!({ "status": 200, "headers": { "a b": "c" } })),
            422,
            "invalid-value",
            "response.headers.a b",
        ),
        (
            "complete",
            response(json!({ "status": 200, "headers": { "a": "b\nc" } })),
            422,
            "invalid-value",
            "response.headers.a",
        ),
        (
            "complete",
            response(json!({ "status": 200, "bodyBase64": "?" })),
            422,
            "invalid-value",
            "response.bodyBase64",
        ),
        (
            "complete",
            response(json!({ "status": 200, "bodyText": "", "bodyBase64": "" })),
            422,
            "invalid-value",
            "response.bodyText",
        ),
        ("complete", owner_with(ME, 1, json!({ "resourceType": "a" })), 422, "invalid-value", "resourceId"),
        ("complete", owner_with(ME, 1, json!({ "resourceId": "a" })), 422, "invalid-value", "resourceType"),
        (
            "complete",
            owner_with(ME, 1, json!({ "resourceType": "", "resourceId": "a" })),
            422,
            "invalid-value",
            "resourceType",
        ),
        ("fail", owner(ME, 1), 400, "invalid-document", "retryable"),
        ("fail", retryable(json!({ "response": { "status": 500 } })), 422, "invalid-value", "response"),
        ("fail", retryable(json!({ "resourceType": "a", "resourceId": "b" })), 422, "invalid-value", "resourceType"),
    ] {
        let problem = act(&world, action, document.clone()).await.problem(status, name);
        assert_eq!(problem["field"], field, "{document}");
    }
    assert_eq!(show(&world).await.json()["state"], "IN_PROGRESS");
    // The fields of a stored response are those of any message, also of one that a server frames.
    let framed = response(json!({ "status": 599, "headers": { "Content-Length": "2", "Idempotency-Key": "x" } }));
    assert_eq!(act(&world, "complete", framed).await.status, 200);
}

#[tokio::test]
async fn a_record_is_deleted_only_if_it_is_the_one_that_was_seen() {
    let world = World::start().await;
    let delete = |tag: Option<&str>| {
        let ask = Ask::new("DELETE", "/idempotency-records/pay/k");
        tag.map_or_else(|| ask.clone(), |tag| ask.clone().header("if-match", tag))
    };
    reserve(&world, ME).await;
    let seen = show(&world).await.header("etag").unwrap().to_owned();
    assert_eq!(seen, "\"1-IN_PROGRESS-1700000000000-1700000060000\"");
    let problem = world.ask(delete(None)).await.problem(428, "precondition-required");
    assert_eq!(problem["field"], "If-Match");
    for tag in ["", "1", "\"1"] {
        world.ask(delete(Some(tag))).await.problem(400, "invalid-parameter");
    }
    world.clock.advance(Duration::from_secs(1));
    act(&world, "renew", owner(ME, 1)).await;
    for tag in [&*seen, "\"x\"", "W/\"1-IN_PROGRESS-1700000001000-1700000061000\""] {
        world.ask(delete(Some(tag))).await.problem(412, "record-changed");
    }
    let now = show(&world).await.header("etag").unwrap().to_owned();
    let deleted = world.ask(delete(Some(&format!("{seen}, {now}")))).await;
    assert_eq!((deleted.status, deleted.body.len()), (204, 0), "{}", deleted.text());
    for tag in ["*", &now] {
        world.ask(delete(Some(tag))).await.problem(404, "record-not-found");
    }
    // An owner that is still at work is fenced by the next one, and until then finds nothing.
    act(&world, "complete", owner(ME, 1)).await.problem(409, "already-ended");
    let next = reserve(&world, OTHER).await.json();
    assert_eq!((&next["epoch"], next.get("previous")), (&json!(2), None));
    assert_eq!(world.ask(delete(Some("*"))).await.status, 204);
    assert_eq!(reserve(&world, ME).await.json()["epoch"], 3);
}

#[tokio::test]
async fn a_renewal_in_the_millisecond_of_the_reservation_is_another_version() {
    let world = World::start().await;
    reserve(&world, ME).await;
    let seen = show(&world).await.header("etag").unwrap().to_owned();
    let renewed = act(&world, "renew", owner_with(ME, 1, json!({ "leaseMs": 90_000 }))).await;
    assert_eq!(renewed.header("etag"), Some("\"1-IN_PROGRESS-1700000000000-1700000090000\""));
    let delete = Ask::new("DELETE", "/idempotency-records/pay/k").header("if-match", &seen);
    world.ask(delete).await.problem(412, "record-changed");
}

#[tokio::test]
async fn a_record_exists_for_its_retention_after_its_end() {
    let world = World::start().await;
    let document = json!({ "requestHash": hash(1), "executionId": ME, "retentionMs": 60_000 });
    assert_eq!(act(&world, "reserve", document).await.status, 201);
    world.clock.advance(Duration::from_secs(50));
    act(&world, "complete", owner(ME, 1)).await;
    world.clock.advance(Duration::from_millis(59_999));
    assert_eq!(reserve(&world, OTHER).await.json()["outcome"], "replay");
    world.clock.advance(Duration::from_millis(1));
    show(&world).await.problem(404, "record-not-found");
    let next = reserve(&world, OTHER).await.json();
    assert_eq!((&next["outcome"], next.get("previous")), (&json!("reserved"), None));
}
