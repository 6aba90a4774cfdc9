//! Claims through the index: taken from Redis, confirmed by the store, and found by a scan when Redis does not have the
//! task.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use redrive_core::{Class, Status, Timestamp};
use redrive_schedule_redis::{Scheduled, Take, Turn};
use redrive_store::conformance::samples::*;
use redrive_store::{News, Settled, Store, SuppressOutcome, Suppression};
use redrive_testbed::{Postgres, Redis};
use support::scheduled::{Pair, in_use, postgres, scheduled};
use support::{due_of_lane, eventually};

/// How many tasks of the samples' lane are in the index.
fn held(redis: &Redis) -> u64 {
    Class::ALL.map(|class| redis.call(&["ZCARD", &due_of_lane(&billing(), class)]).parse::<u64>().unwrap()).iter().sum()
}

async fn claimed(store: &Scheduled, room: usize, now: Timestamp) -> Vec<u64> {
    let claimed = claim(store, billing(), room, now).await;
    claimed.iter().map(|claimed| claimed.task.id.sequence() - id(0).sequence()).collect()
}

/// The next due time of the samples' lane, as a claim returns it.
async fn next_due(store: &Scheduled, now: Timestamp) -> Option<Timestamp> {
    let claims = claim_rooms(store, Class::ALL.map(|class| room(billing(), class, 0, 0)), now).await;
    claims.lanes.into_iter().filter_map(|lane| lane.next_due).min()
}

async fn look(store: &Scheduled) {
    store.upkeep().pending_lanes(None, 100).await.unwrap();
}

#[tokio::test]
async fn what_one_process_submits_another_takes_from_the_index() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    keep(&pair.one, [task(1).due(at(20)), task(2).due(at(10)), task(3).due(at(99))]).await;
    eventually("the index has them", || async { held(&redis) == 3 }).await;
    assert_eq!(claimed(&pair.other, 5, at(50)).await, [2, 1]);
    assert_eq!(held(&redis), 1);
    assert_eq!(next_due(&pair.other, at(50)).await, Some(at(99)));
    assert_eq!(counts(&pair.one, acme()).await, [1, 2, 0, 0, 0, 0]);
}

#[tokio::test]
async fn others_hear_of_due_work_over_redis() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let subscribers = || async { redis.call(&["PUBSUB", "NUMSUB", "redrive:2:news"]) == "redrive:2:news\n2" };
    eventually("both listen", subscribers).await;
    keep(&pair.one, [task(1).due(at(90_000)).to("later"), task(2), task(3)]).await;
    let heard = pair.other.shared().unwrap().next_news().await;
    let due = News::Due(lane_due(billing(), Class::First, Some(at(0))));
    assert_eq!(heard, [due], "what is not due is no news");
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

/// One scan is enough for as many turns as are needed.
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
    assert_eq!(held(&redis), 0);
}

#[tokio::test]
async fn what_was_taken_by_a_process_that_died_is_found_by_a_look() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    keep(&pair.one, [task(1), task(2).due(at(1))]).await;
    eventually("the index has them", || async { held(&redis) == 2 }).await;
    let dying = support::connected_schedule(&redis.url()).await;
    let taken = dying.take(&[Turn { lane: billing(), class: Class::First, tasks: 1 }], at(5)).await.remove(0).unwrap();
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
    // Until a listener is connected, messages are lost, and every task is one more.
    let heard = loop {
        let enqueue = format!("SELECT redrive.enqueue('{DEPENDENCY}/charges', tenant => '{TENANT}')");
        client.batch_execute(&enqueue).await.unwrap();
        let heard = tokio::time::timeout(std::time::Duration::from_millis(200), store.shared().unwrap().next_news());
        if let Ok(mut heard) = heard.await {
            break heard.remove(0);
        }
    };
    assert!(matches!(heard, News::Due(due) if due.lane == billing() && due.class == Class::First));
    assert!(!claim(&store, billing(), 100, Timestamp::MAX.before(TERMS.margin * 100)).await.is_empty());
    drop(client);
    driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_the_index_has_of_a_task_that_has_ended_is_left_out() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let without_index = postgres(pair.database.url(), "third").await;
    keep(&pair.one, (1..=30).map(task)).await;
    eventually("the index has them", || async { held(&redis) == 30 }).await;
    // Claimed and cancelled without the index, which still has them.
    claim(&*without_index, billing(), 15, at(5)).await;
    for n in 16..=25 {
        without_index.tasks().cancel_one(acme(), id(n), at(5)).await.unwrap();
    }
    assert_eq!(claimed(&pair.one, 10, at(5)).await, [26, 27, 28, 29, 30], "and takes up no room");
    assert_eq!(held(&redis), 0);
}

#[tokio::test]
async fn every_way_to_become_pending_again_leads_into_the_index() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let first = keep_and_claim(&pair.one, task(1)).await;
    assert_eq!(settle(&pair.one, retry(&first, at(5), at(500))).await, Settled::Done(Status::Pending));
    eventually("the retry waits", || async { held(&redis) == 1 }).await;
    assert!(claimed(&pair.other, 1, at(499)).await.is_empty());

    pair.one.tasks().bring_one_forward(acme(), id(1), at(50)).await.unwrap();
    eventually("it is due", || async { next_due(&pair.other, at(0)).await == Some(at(50)) }).await;
    let second = claim(&pair.other, billing(), 1, at(50)).await.remove(0);
    let given_up = end(&second, Status::Exhausted, Some(redrive_core::Reason::Attempts), at(60));
    settle(&pair.other, given_up).await;

    pair.one.tasks().replay_one(acme(), id(1), at(70)).await.unwrap();
    eventually("the replay waits", || async { held(&redis) == 1 }).await;
    let third = claim(&pair.other, billing(), 1, at(70)).await.remove(0);
    assert_eq!(settle(&pair.other, unsent(&third, at(71), at(80))).await, Settled::Done(Status::Pending));
    eventually("it was given back", || async { held(&redis) == 1 }).await;

    pair.one.tasks().cancel_one(acme(), id(1), at(75)).await.unwrap();
    eventually("what was cancelled is gone", || async { held(&redis) == 0 }).await;
}

/// A new process settles tasks that others claimed: it must read their lanes from the store.
#[tokio::test]
async fn a_lease_that_is_taken_over_leads_back_into_the_index() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let first = keep_and_claim(&pair.one, task(1)).await;
    let second = keep_and_claim(&pair.one, task(2)).await;
    settle(&pair.other, retry(&first, at(5), at(500))).await;
    eventually("the retry waits", || async { held(&redis) == 1 }).await;
    let expired = pair.other.upkeep().expired_leases(at(900_000), 10).await.unwrap();
    assert_eq!(expired.len(), 1);
    settle(&pair.other, retry(&second, at(5), at(500))).await;
    eventually("both wait", || async { held(&redis) == 2 }).await;
    assert_eq!(claimed(&pair.one, 5, at(500)).await, [1, 2]);
}

/// Claims into one room of first attempts.
async fn claimed_into(store: &Scheduled, slots: usize, ahead: usize) -> Vec<u64> {
    let claims = claim_rooms(store, [room(billing(), Class::First, slots, ahead)], at(50)).await;
    claims.claimed.iter().map(|claimed| claimed.task.id.sequence() - id(0).sequence()).collect()
}

#[tokio::test]
async fn last_attempts_without_a_slot_stay_in_the_index() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    keep(&pair.one, (1..=6).map(|n| task(n).due(at(n)).max_attempts(if n % 2 == 0 { 1 } else { 5 }))).await;
    eventually("the index has them", || async { held(&redis) == 6 }).await;
    assert_eq!(claimed_into(&pair.other, 0, 9).await, [1]);
    eventually("the others are back", || async { held(&redis) == 5 }).await;
    assert!(claimed_into(&pair.other, 0, 9).await.is_empty());
    eventually("all of them", || async { held(&redis) == 5 }).await;
    assert_eq!(next_due(&pair.other, at(50)).await, Some(at(2)));
    assert_eq!(claimed_into(&pair.one, 1, 9).await, [2, 3]);
    eventually("the others are back", || async { held(&redis) == 3 }).await;
    assert_eq!(claimed_into(&pair.other, 9, 0).await, [4, 5, 6]);
}

#[tokio::test]
async fn what_has_no_slot_and_has_ended_is_not_put_back() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let without_index = postgres(pair.database.url(), "third").await;
    keep(&pair.one, (1..=9).map(|n| task(n).due(at(n)).max_attempts(if n == 5 { 1 } else { 5 }))).await;
    eventually("the index has them", || async { held(&redis) == 9 }).await;
    for n in [1, 2, 4, 7] {
        without_index.tasks().cancel_one(acme(), id(n), at(5)).await.unwrap();
    }
    assert_eq!(claimed_into(&pair.one, 0, 9).await, [3]);
    eventually("from the fifth on they are back", || async { held(&redis) == 5 }).await;
    assert_eq!(next_due(&pair.one, at(50)).await, Some(at(5)));
    assert_eq!(claimed_into(&pair.one, 9, 0).await, [5, 6, 8, 9]);
    assert_eq!(held(&redis), 0);
}

#[tokio::test]
async fn what_ends_by_its_deadline_leaves_the_index() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    keep(&pair.one, [task(1).due(at(10)).deadline(at(20)), task(2).due(at(30)).deadline(at(90))]).await;
    keep_retries(&pair.one, [task(3).due(at(10)).deadline(at(20))]).await;
    // A claim that was given back has its own token.
    give_back(&pair.one, &claim_class(&pair.one, billing(), Class::Retry, 1, at(10)).await, at(15)).await;
    eventually("the index has them", || async { held(&redis) == 3 }).await;
    assert_eq!(pair.other.upkeep().end_overdue(at(20), 9).await.unwrap().ended.len(), 2);
    eventually("they are gone", || async { held(&redis) == 1 }).await;
    assert_eq!(next_due(&pair.one, at(20)).await, Some(at(30)));
}

#[tokio::test]
async fn what_is_suppressed_leaves_the_index() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    keep_retries(&pair.one, [task(1).due(at(10)), task(2).due(at(20)), task(3).due(at(30))]).await;
    // A claim that was given back has its own token.
    give_back(&pair.one, &claim_class(&pair.one, billing(), Class::Retry, 1, at(10)).await, at(15)).await;
    eventually("the index has them", || async { held(&redis) == 3 }).await;
    // The first two, and the third one with a wrong number of attempts.
    let given = [(1, 1), (2, 1), (3, 2)];
    let given = given.map(|(n, attempts)| Suppression { tenant: acme(), id: id(n), attempt_number: attempts });
    let answers = pair.other.tasks().suppress(given.to_vec(), at(20)).await.unwrap();
    assert_eq!(answers.iter().filter(|answer| matches!(answer, Ok(SuppressOutcome::Done(_)))).count(), 2);
    eventually("they are gone", || async { held(&redis) == 1 }).await;
    assert_eq!(ids(&claim_class(&pair.one, billing(), Class::Retry, 9, at(30)).await), [id(3)]);
}

#[tokio::test]
async fn others_hear_over_redis_of_a_cancel_of_what_is_in_flight() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let subscribers = || async { redis.call(&["PUBSUB", "NUMSUB", "redrive:2:news"]) == "redrive:2:news\n2" };
    eventually("both listen", subscribers).await;
    keep(&pair.one, [task(1).claimed(at(0))]).await;
    pair.other.tasks().cancel_one(acme(), id(1), at(5)).await.unwrap();
    assert_eq!(pair.one.shared().unwrap().next_news().await, [News::CancelRequested(acme(), id(1))]);
}

/// Keys of the previous version contain no version, and its sorted sets have no classes.
#[tokio::test]
async fn an_index_of_the_version_before_is_not_read() {
    let redis = Redis::start();
    let database = Postgres::shared().fresh_database();
    let store = postgres(database.url(), "one").await;
    keep(&*store, [task(1).due(at(10))]).await;
    keep_retries(&*store, [task(2).due(at(20))]).await;
    let info = redis.call(&["INFO", "server"]);
    let run = info.lines().find_map(|line| line.trim().strip_prefix("run_id:")).unwrap().to_owned();
    for partition in 0..256 {
        redis.call(&["HSET", &format!("redrive:{{{partition}}}:book"), "epoch", &run]);
    }
    let due = due_of_lane(&billing(), Class::First).replace(":2:", ":").replace(":0:", ":");
    assert!(due.starts_with("redrive:{") && due.contains("}:due:acme/"), "{due}");
    redis.call(&["ZADD", &due, "0", "not a task of this version"]);
    let store = scheduled(store, &redis.url(), "redrive");
    in_use(&store).await;
    assert_eq!(held(&redis), 2, "filled from the store");
    assert_eq!(claimed(&store, 9, at(50)).await, [1, 2]);
    assert_eq!(redis.call(&["ZCARD", &due]), "1", "processes of the version before may still use theirs");
}
