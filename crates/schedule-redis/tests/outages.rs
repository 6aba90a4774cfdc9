//! What a failing Redis or a failing store does to claims: they are made from the other, and nothing is lost.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::time::{Duration, Instant};

use redrive_core::Class;
use redrive_schedule_redis::{InUse, Scheduled};
use redrive_store::Store;
use redrive_store::conformance::samples::*;
use redrive_testbed::redis::Options;
use redrive_testbed::{Postgres, Redis};
use support::scheduled::{Pair, in_use, postgres, scheduled};
use support::{due_of_lane, eventually};

fn held(redis: &Redis) -> String {
    redis.call(&["ZCARD", &due_of_lane(&billing(), Class::First)])
}

async fn claim_all(store: &Scheduled) -> usize {
    claim(store, billing(), 1_000, at(5)).await.len()
}

const NOTHING: InUse = InUse { complete: 0, incomplete: 0, failed: 256 };

#[tokio::test]
async fn the_index_is_rebuilt_after_a_flush_without_any_call() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    keep(&pair.one, (1..=25).map(|n| task(n).due(at(n)))).await;
    eventually("the index has them", || async { held(&redis) == "25" }).await;
    redis.call(&["FLUSHALL"]);
    // The first call notices the failure, and is answered by the store.
    assert_eq!(claim_all(&pair.other).await, 5);
    eventually("the rest is back", || async { held(&redis) == "20" }).await;
    in_use(&pair.other).await;
    assert_eq!(redis.call(&["KEYS", "redrive:*:book"]).lines().count(), 256, "all partitions, not only the lane's");
    assert_eq!(claim(&pair.one, billing(), 100, at(1_000)).await.len(), 20);
}

#[tokio::test]
async fn a_server_that_is_killed_and_comes_back_empty_is_filled_again() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    keep(&pair.one, (1..=25).map(|n| task(n).due(at(n)))).await;
    redis.kill();
    assert_eq!(claim_all(&pair.one).await, 5);
    assert_eq!(claim_all(&pair.other).await, 0);
    keep(&pair.one, (30..=40).map(|n| task(n).due(at(n)))).await;
    redis.start_again();
    eventually("all of them are in the index", || async { held(&redis) == "31" }).await;
    in_use(&pair.one).await;
    in_use(&pair.other).await;
    assert_eq!(claim(&pair.other, billing(), 100, at(1_000)).await.len(), 31);
}

/// Its data is from the moment of its death, which cannot be told from older data.
#[tokio::test]
async fn a_server_that_comes_back_with_its_data_is_filled_again() {
    let redis = Redis::start_with(Options { durable: true, ..Options::default() });
    let pair = Pair::start(&redis.url()).await;
    keep(&pair.one, (1..=25).map(task)).await;
    eventually("the index has them", || async { held(&redis) == "25" }).await;
    redis.kill();
    keep(&pair.one, (30..=40).map(task)).await;
    redis.start_again();
    eventually("all of them are in the index", || async { held(&redis) == "36" }).await;
    in_use(&pair.other).await;
    assert_eq!(claim_all(&pair.other).await, 36);
}

/// One claim waits for the timeout; after that Redis is not called.
#[tokio::test]
async fn a_server_that_stands_still_is_asked_once() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    keep(&pair.one, (1..=5).map(task)).await;
    eventually("the index has them", || async { held(&redis) == "5" }).await;
    redis.pause();
    let begin = Instant::now();
    assert_eq!(claim(&pair.one, billing(), 1, at(5)).await.len(), 1);
    assert!(begin.elapsed() >= Duration::from_millis(500), "it was asked, and did not answer");
    eventually("it is known to have failed", || async { pair.one.in_use() == NOTHING }).await;

    // Tasks that are submitted meanwhile are kept, and added to the index when Redis is back.
    keep(&pair.one, (11..=15).map(|n| task(n).to("another"))).await;
    redis.resume();
    in_use(&pair.one).await;
    assert_eq!(redis.call(&["ZCARD", &due_of_lane(&lane(TENANT, "another"), Class::First)]), "5");
    assert_eq!(claim(&pair.one, lane(TENANT, "another"), 10, at(5)).await.len(), 5);
    // The take whose answer was not awaited has happened: the lane is claimed from the store until both agree.
    for _ in 0..4 {
        assert_eq!(claim(&pair.one, billing(), 1, at(5)).await.len(), 1);
    }
}

#[tokio::test]
async fn what_redis_had_no_room_for_is_added_when_it_has() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    redis.call(&["CONFIG", "SET", "maxmemory", "1"]);
    keep(&pair.one, (1..=5).map(task)).await;
    eventually("it is known", || async { pair.one.in_use().failed > 0 }).await;
    assert_eq!(claim(&pair.one, billing(), 2, at(5)).await.len(), 2);
    assert_eq!(held(&redis), "0");
    redis.call(&["CONFIG", "SET", "maxmemory", "0"]);
    in_use(&pair.one).await;
    assert_eq!(claim_all(&pair.other).await, 3);
}

/// Neither answers: nothing is claimed, and Redis takes the tasks out later, when no caller waits for them.
#[tokio::test]
async fn a_take_whose_answer_was_lost_is_made_up_for_without_a_look() {
    let redis = Redis::start();
    let server = Postgres::start();
    let database = server.fresh_database();
    let store = scheduled(postgres(database.url(), "one").await, &redis.url(), "redrive");
    in_use(&store).await;
    keep(&store, (1..=5).map(task)).await;
    eventually("the index has them", || async { held(&redis) == "5" }).await;
    assert_eq!(claim(&store, billing(), 0, at(5)).await.len(), 0, "from now on Redis has the script");
    server.kill();
    redis.pause();
    let turn = || request([room(billing(), Class::First, 3, 0)], at(5));
    store.tasks().claim(turn()).await.unwrap_err();
    server.start_again();
    eventually("the store answers", || async { store.health().check().await.is_ok() }).await;
    redis.resume();
    in_use(&store).await;
    assert_eq!(held(&redis), "2");
    let first = store.tasks().claim(turn()).await.unwrap().claimed.len();
    let second = store.tasks().claim(turn()).await.unwrap().claimed.len();
    assert_eq!((first, second), (3, 2));
}

#[tokio::test]
async fn what_the_store_could_not_confirm_is_put_back() {
    let redis = Redis::start();
    let server = Postgres::start();
    let database = server.fresh_database();
    let store = scheduled(postgres(database.url(), "one").await, &redis.url(), "redrive");
    in_use(&store).await;
    keep(&store, (1..=5).map(task)).await;
    eventually("the index has them", || async { held(&redis) == "5" }).await;
    server.kill();
    let turn = || request([room(billing(), Class::First, 3, 0)], at(5));
    store.tasks().claim(turn()).await.unwrap_err();
    eventually("they are back", || async { held(&redis) == "5" }).await;
    server.start_again();
    eventually("the store answers", || async { store.health().check().await.is_ok() }).await;
    assert_eq!(store.tasks().claim(turn()).await.unwrap().claimed.len(), 3);
    assert_eq!(store.tasks().claim(turn()).await.unwrap().claimed.len(), 2);
}

#[tokio::test]
async fn without_redis_everything_works_and_it_may_come_later() {
    let redis = Redis::start();
    redis.kill();
    let database = Postgres::shared().fresh_database();
    let store = scheduled(postgres(database.url(), "one").await, &redis.url(), "redrive");
    keep(&store, (1..=5).map(task)).await;
    assert_eq!(claim(&store, billing(), 2, at(5)).await.len(), 2);
    assert_eq!(store.in_use(), NOTHING);
    redis.start_again();
    in_use(&store).await;
    assert_eq!(held(&redis), "3");
    assert_eq!(claim_all(&store).await, 3);
}
