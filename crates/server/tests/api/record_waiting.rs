//! `Prefer: wait` on a reservation.

use std::time::Duration;

use redrive_core::idempotency::{Change, Completion, Epoch, Owner, RecordKey};
use redrive_core::{RecordName, TenantId};
use serde_json::json;

use crate::records::{ME, OTHER, act, hash, reserve};
use crate::world::{Ask, Setup, World};

fn waiting(wait: &str) -> Ask {
    let document = json!({ "requestHash": hash(1), "executionId": OTHER }).to_string();
    Ask::post("/idempotency-records/pay/k/reserve", &document).header("prefer", wait)
}

fn owner() -> serde_json::Value {
    json!({ "executionId": ME, "epoch": 1 })
}

fn key() -> RecordKey {
    RecordKey {
        tenant: TenantId::default_tenant(),
        operation: "pay".parse().unwrap(),
        name: RecordName::try_new("k").unwrap(),
    }
}

fn first_owner() -> Owner {
    Owner { execution: ME.parse().unwrap(), epoch: Epoch(1) }
}

#[tokio::test]
async fn a_caller_that_waits_gets_the_result_as_soon_as_it_is_there() {
    let world = World::start().await;
    reserve(&world, ME).await;
    let complete = async {
        world.clock.until_a_sleep_of(Duration::from_secs(20)).await;
        act(&world, "complete", json!({ "executionId": ME, "epoch": 1, "resourceType": "a", "resourceId": "b" })).await
    };
    let (answer, completed) = tokio::join!(world.ask(waiting("wait=20")), complete);
    assert_eq!(completed.status, 200);
    assert_eq!((answer.status, answer.header("preference-applied")), (200, Some("wait=20")), "{}", answer.text());
    assert_eq!((&answer.json()["outcome"], &answer.json()["resourceId"]), (&json!("replay"), &json!("b")));
    // A caller that waits counts once, by its last answer.
    let totals = world.app.totals.snapshot();
    assert_eq!((totals.reservations, totals.in_progress, totals.replays), (1, 0, 1));
}

#[tokio::test]
async fn a_caller_that_waits_executes_once_the_owner_gives_up_or_fails() {
    for (action, document, previous) in [
        ("release", owner(), None),
        ("fail", json!({ "executionId": ME, "epoch": 1, "retryable": true }), Some("FAILED_RETRYABLE")),
    ] {
        let world = World::start().await;
        reserve(&world, ME).await;
        let end = async {
            world.clock.until_a_sleep_of(Duration::from_secs(20)).await;
            act(&world, action, document).await
        };
        let (answer, _) = tokio::join!(world.ask(waiting("wait=20")), end);
        assert_eq!((answer.status, &answer.json()["epoch"]), (201, &json!(2)), "{action}");
        assert_eq!(answer.json()["previous"]["state"].as_str(), previous, "{action}");
    }
}

#[tokio::test]
async fn a_caller_that_waits_takes_over_when_the_lease_ends_even_if_it_was_renewed() {
    let world = World::start().await;
    act(&world, "reserve", json!({ "requestHash": hash(1), "executionId": ME, "leaseMs": 10_000 })).await;
    let time_passes = async {
        world.clock.until_a_sleep_of(Duration::from_secs(10)).await;
        world.clock.advance(Duration::from_secs(4));
        // The lease ends at 14 s now.
        let renewed = act(&world, "renew", json!({ "executionId": ME, "epoch": 1, "leaseMs": 10_000 })).await;
        assert_eq!(renewed.status, 200);
        world.clock.advance(Duration::from_secs(6));
        world.clock.until_a_sleep_of(Duration::from_secs(4)).await;
        world.clock.advance(Duration::from_secs(4));
    };
    let (answer, ()) = tokio::join!(world.ask(waiting("wait=20")), time_passes);
    assert_eq!((answer.status, &answer.json()["previous"]["executionId"]), (201, &json!(ME)), "{}", answer.text());
}

#[tokio::test]
async fn a_wait_ends_with_409_and_a_wait_of_zero_at_once() {
    let world = World::start().await;
    reserve(&world, ME).await;
    let time_passes = async {
        world.clock.until_a_sleep_of(Duration::from_secs(7)).await;
        world.clock.advance(Duration::from_secs(7));
    };
    let (answer, ()) = tokio::join!(world.ask(waiting("wait=7")), time_passes);
    answer.problem(409, "idempotency-in-progress");
    assert_eq!(answer.header("retry-after"), Some("30"));
    world.ask(waiting("wait=0")).await.problem(409, "idempotency-in-progress");
    // Another request does not wait, and does not learn that an execution is under way.
    let other = Ask::post("/idempotency-records/pay/k/reserve", &json!({ "requestHash": hash(2) }).to_string());
    world.ask(other.header("prefer", "wait=30")).await.problem(422, "idempotency-key-reused");
}

#[tokio::test]
async fn a_deleted_record_lets_those_who_wait_execute() {
    let world = World::start().await;
    reserve(&world, ME).await;
    let delete = async {
        world.clock.until_a_sleep_of(Duration::from_secs(20)).await;
        world.ask(Ask::new("DELETE", "/idempotency-records/pay/k").header("if-match", "*")).await
    };
    let (answer, deleted) = tokio::join!(world.ask(waiting("wait=20")), delete);
    assert_eq!((deleted.status, answer.status), (204, 201));
}

#[tokio::test]
async fn a_result_that_another_process_stored_is_found_by_polling() {
    let world = World::of(Setup { is_shared: true, ..Setup::default() }).await;
    reserve(&world, ME).await;
    let elsewhere = async {
        let poll = Duration::from_millis(250);
        // The first poll finds it under way.
        world.clock.until_a_sleep_of(poll).await;
        world.clock.advance(poll);
        world.clock.until_a_sleep_of(poll).await;
        let change = Change::Complete(Completion::default());
        world.engine.store().records().change_one(key(), first_owner(), change, world.engine.now()).await.unwrap();
        world.clock.advance(poll);
    };
    let (answer, ()) = tokio::join!(world.ask(waiting("wait=20")), elsewhere);
    assert_eq!((answer.status, &answer.json()["outcome"]), (200, &json!("replay")), "{}", answer.text());
}

#[tokio::test]
async fn a_shutdown_ends_the_wait() {
    let mut world = World::start().await;
    reserve(&world, ME).await;
    let address = world.address;
    let asked =
        tokio::spawn(async move { crate::world::Connection::open(address).await.ask(waiting("wait=30")).await });
    world.clock.until_a_sleep_of(Duration::from_secs(30)).await;
    world.begin_shutdown();
    asked.await.unwrap().problem(409, "idempotency-in-progress");
}

#[tokio::test]
async fn of_many_callers_that_wait_one_executes_after_a_release() {
    let world = World::start().await;
    reserve(&world, ME).await;
    let document = json!({ "requestHash": hash(1) }).to_string();
    let ask = || Ask::post("/idempotency-records/pay/k/reserve", &document).header("prefer", "wait=20");
    let all = futures_util::future::join_all((0..50).map(|_| world.ask(ask())));
    let end = async {
        world.clock.until_sleeps_of(Duration::from_secs(20), 50).await;
        act(&world, "release", owner()).await;
        // One of them executes now; the others wait for its lease, which begins now.
        world.clock.until_sleeps_of(Duration::from_secs(60), 49).await;
        world.clock.advance(Duration::from_secs(20));
    };
    let (answers, ()) = tokio::join!(all, end);
    let granted = answers.iter().filter(|answer| answer.status == 201).count();
    let refused = answers.iter().filter(|answer| answer.status == 409).count();
    assert_eq!((granted, refused), (1, 49));
}

#[tokio::test]
async fn of_many_callers_that_wait_for_a_record_of_a_shared_store_one_polls() {
    let world = World::of(Setup { is_shared: true, ..Setup::default() }).await;
    reserve(&world, ME).await;
    let poll = Duration::from_millis(250);
    let document = json!({ "requestHash": hash(1) }).to_string();
    let ask = |wait| world.ask(Ask::post("/idempotency-records/pay/k/reserve", &document).header("prefer", wait));
    // The caller that polls goes away before the others.
    let first = async { ask("wait=5").await.problem(409, "idempotency-in-progress") };
    let others = async {
        world.clock.until_a_sleep_of(Duration::from_secs(60)).await;
        futures_util::future::join_all((0..49).map(|_| ask("wait=20"))).await
    };
    let elsewhere = async {
        world.clock.until_sleeps_of(Duration::from_secs(60), 50).await;
        let reads = world.store.record_reads();
        for round in 0..=8 {
            world.clock.until_a_sleep_of(poll).await;
            assert_eq!(world.store.record_reads(), reads + round);
            world.clock.advance(poll);
        }
        world.clock.until_a_sleep_of(poll).await;
        world.clock.advance(Duration::from_secs(5));
        world.clock.until_a_sleep_of(poll).await;
        let change = Change::Complete(Completion::default());
        world.engine.store().records().change_one(key(), first_owner(), change, world.engine.now()).await.unwrap();
        world.clock.advance(poll);
    };
    let (_, answers, ()) = tokio::join!(first, others, elsewhere);
    assert_eq!(answers.len(), 49);
    for answer in answers {
        assert_eq!((answer.status, &answer.json()["outcome"]), (200, &json!("replay")), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_caller_that_waits_does_not_hold_its_document() {
    let world = World::start().await;
    let body = "x".repeat(1024 * 1024);
    let request = json!({ "request": { "method": "POST", "path": "/", "bodyText": body } }).to_string();
    let ask = || Ask::post("/idempotency-records/pay/k/reserve", &request);
    assert_eq!(world.ask(ask()).await.status, 201);
    let waiting = futures_util::future::join_all((0..8).map(|_| world.ask(ask().header("prefer", "wait=20"))));
    let look = async {
        world.clock.until_sleeps_of(Duration::from_secs(60), 8).await;
        assert!(world.memory.peak() > body.len(), "{:?}", world.memory);
        assert!(world.memory.held() < 128 * 1024, "{:?}", world.memory);
        world.clock.advance(Duration::from_secs(20));
    };
    let (answers, ()) = tokio::join!(waiting, look);
    answers.iter().for_each(|answer| drop(answer.problem(409, "idempotency-in-progress")));
}
