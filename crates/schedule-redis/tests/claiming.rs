//! Claims through the index: taken from Redis, confirmed by the store, and found by a look when Redis does not know.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use redrive_core::{Status, Timestamp};
use redrive_schedule_redis::{Scheduled, Take};
use redrive_store::conformance::samples::*;
use redrive_store::{LaneDue, LaneRoom, Settled, Store};
use redrive_testbed::{Postgres, Redis};
use support::scheduled::{Pair, in_use, postgres, scheduled};
use support::{due_of_lane, eventually};

/// How many tasks of the samples' lane are in the index.
fn held(redis: &Redis) -> String {
    redis.call(&["ZCARD", &due_of_lane(&billing())])
}

async fn claimed(store: &Scheduled, room: usize, now: Timestamp) -> Vec<u64> {
    let claimed = claim(store, billing(), room, now).await;
    claimed.iter().map(|claimed| claimed.task.id.sequence() - id(0).sequence()).collect()
}

/// What a claim says of the samples' lane.
async fn next_due(store: &Scheduled, now: Timestamp) -> Option<Timestamp> {
    let claims = store.claim(vec![LaneRoom { lane: billing(), room: 0 }], TERMS, now).await.unwrap();
    claims.lanes[0].next_due
}

async fn look(store: &Scheduled) {
    store.pending_lanes(None, 100).await.unwrap();
}

#[tokio::test]
async fn what_one_process_submits_another_takes_from_the_index() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    keep(&pair.one, [task(1).due(at(20)), task(2).due(at(10)), task(3).due(at(99))]).await;
    eventually("the index has them", || async { held(&redis) == "3" }).await;
    assert_eq!(claimed(&pair.other, 5, at(50)).await, [2, 1]);
    assert_eq!(held(&redis), "1");
    assert_eq!(next_due(&pair.other, at(50)).await, Some(at(99)));
    assert_eq!(counts(&pair.one, acme()).await, [1, 2, 0, 0, 0, 0]);
}

#[tokio::test]
async fn others_hear_of_due_work_over_redis() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let subscribers = || async { redis.call(&["PUBSUB", "NUMSUB", "redrive:news"]) == "redrive:news\n2" };
    eventually("both listen", subscribers).await;
    keep(&pair.one, [task(1).due(at(90_000)).to("later"), task(2), task(3)]).await;
    let heard = pair.other.shared().unwrap().heard().await;
    assert_eq!(heard, [LaneDue { lane: billing(), next_due: Some(at(0)) }], "what is not due is no news");
}

#[tokio::test]
async fn what_the_index_does_not_know_is_found_by_a_look_at_the_store() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let without_index = postgres(pair.database.url(), "third").await;
    keep(&*without_index, [task(1)]).await;
    assert!(claimed(&pair.one, 5, at(50)).await.is_empty(), "claims are taken from the index");
    look(&pair.one).await;
    assert_eq!(claimed(&pair.one, 5, at(50)).await, [1]);
}

#[tokio::test]
async fn a_later_task_that_the_index_does_not_know_is_claimed_on_time() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let without_index = postgres(pair.database.url(), "third").await;
    keep(&pair.one, [task(1).due(at(900))]).await;
    keep(&*without_index, [task(2).due(at(500))]).await;
    look(&pair.one).await;
    assert_eq!(next_due(&pair.one, at(100)).await, Some(at(500)));
    assert_eq!(claimed(&pair.one, 5, at(500)).await, [2]);
    assert_eq!(claimed(&pair.one, 5, at(900)).await, [1]);
}

/// Not one turn for each look, but as many as it takes.
#[tokio::test]
async fn many_tasks_that_the_index_does_not_know_are_found_by_one_look() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let without_index = postgres(pair.database.url(), "third").await;
    keep(&*without_index, (1..=40).map(task)).await;
    keep(&pair.one, (41..=60).map(|n| task(n).due(at(1)))).await;
    look(&pair.one).await;
    let mut found = Vec::new();
    for _ in 0..6 {
        found.extend(claimed(&pair.one, 10, at(50)).await);
    }
    assert_eq!(found, (1..=60).collect::<Vec<_>>());
    assert_eq!(held(&redis), "0");
}

#[tokio::test]
async fn what_was_taken_by_a_process_that_died_is_found_by_a_look() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    keep(&pair.one, [task(1), task(2).due(at(1))]).await;
    eventually("the index has them", || async { held(&redis) == "2" }).await;
    let dying = support::connected_schedule(&redis.url()).await;
    let taken = dying.take(&[LaneRoom { lane: billing(), room: 1 }], at(5)).await.remove(0).unwrap();
    assert!(matches!(taken, Take::Taken(taken) if taken.tasks.len() == 1));

    assert_eq!(claimed(&pair.other, 1, at(5)).await, [2]);
    look(&pair.other).await;
    assert_eq!(claimed(&pair.other, 1, at(5)).await, [1]);
}

#[tokio::test]
async fn a_task_enqueued_by_sql_is_claimed_when_the_store_tells_of_it() {
    let redis = Redis::start();
    let database = Postgres::shared().fresh_database();
    let store = scheduled(postgres(database.url(), "one").await, &redis.url(), "redrive");
    in_use(&store).await;
    allow(&store, acme()).await;
    let (client, driver) = tokio_postgres::connect(database.url(), tokio_postgres::NoTls).await.unwrap();
    let driver = tokio::spawn(driver);
    // Until somebody listens, what is said is lost, and every task is one more.
    let lane = loop {
        let enqueue = format!("SELECT redrive.enqueue('{DEPENDENCY}/charges', tenant => '{TENANT}')");
        client.batch_execute(&enqueue).await.unwrap();
        let heard = tokio::time::timeout(std::time::Duration::from_millis(200), store.shared().unwrap().heard());
        if let Ok(mut heard) = heard.await {
            break heard.remove(0).lane;
        }
    };
    assert_eq!(lane, billing());
    assert!(!claim(&store, lane, 100, Timestamp::MAX.before(TERMS.margin * 100)).await.is_empty());
    drop(client);
    driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_the_index_has_of_a_task_that_has_ended_is_left_out() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let without_index = postgres(pair.database.url(), "third").await;
    keep(&pair.one, (1..=30).map(task)).await;
    eventually("the index has them", || async { held(&redis) == "30" }).await;
    // Claimed and cancelled past the index, which goes on having them.
    claim(&*without_index, billing(), 15, at(5)).await;
    for n in 16..=25 {
        without_index.cancel(acme(), id(n), at(5)).await.unwrap();
    }
    assert_eq!(claimed(&pair.one, 10, at(5)).await, [26, 27, 28, 29, 30], "and takes up no room");
    assert_eq!(held(&redis), "0");
}

#[tokio::test]
async fn every_way_to_become_pending_again_leads_into_the_index() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let first = keep_and_claim(&pair.one, task(1)).await;
    assert_eq!(settle(&pair.one, retry(&first, at(5), at(500))).await, Settled::Done(Status::Pending));
    eventually("the retry waits", || async { held(&redis) == "1" }).await;
    assert!(claimed(&pair.other, 1, at(499)).await.is_empty());

    pair.one.bring_forward(acme(), id(1), at(50)).await.unwrap();
    eventually("it is due", || async { next_due(&pair.other, at(0)).await == Some(at(50)) }).await;
    let second = claim(&pair.other, billing(), 1, at(50)).await.remove(0);
    let given_up = end(&second, Status::Exhausted, Some(redrive_core::Reason::Attempts), at(60));
    settle(&pair.other, given_up).await;

    pair.one.replay(acme(), id(1), at(70)).await.unwrap();
    eventually("the replay waits", || async { held(&redis) == "1" }).await;
    let third = claim(&pair.other, billing(), 1, at(70)).await.remove(0);
    assert_eq!(settle(&pair.other, unsent(&third, at(71), at(80))).await, Settled::Done(Status::Pending));
    eventually("it was given back", || async { held(&redis) == "1" }).await;

    pair.one.cancel(acme(), id(1), at(75)).await.unwrap();
    eventually("what was cancelled is gone", || async { held(&redis) == "0" }).await;
}

/// A process that starts anew settles what others claimed: it has to ask the store which lane that was.
#[tokio::test]
async fn a_lease_that_is_taken_over_leads_back_into_the_index() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let first = keep_and_claim(&pair.one, task(1)).await;
    let second = keep_and_claim(&pair.one, task(2)).await;
    settle(&pair.other, retry(&first, at(5), at(500))).await;
    eventually("the retry waits", || async { held(&redis) == "1" }).await;
    let expired = pair.other.expired(at(900_000), 10).await.unwrap();
    assert_eq!(expired.len(), 1);
    settle(&pair.other, retry(&second, at(5), at(500))).await;
    eventually("both wait", || async { held(&redis) == "2" }).await;
    assert_eq!(claimed(&pair.one, 5, at(500)).await, [1, 2]);
}
