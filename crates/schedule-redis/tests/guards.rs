//! The guards' counts of all processes, in Redis while it answers and in the store otherwise.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use redrive_core::Timestamp;
use redrive_schedule_redis::Scheduled;
use redrive_store::{Guards, Hold, Store, Tally, Totals};
use redrive_testbed::{Redis, RedisCluster};
use support::scheduled::{Pair, in_use};
use support::{at, lane};

fn guards(store: &Scheduled) -> &dyn Guards {
    store.shared().unwrap().guards()
}

fn tally(name: &str, millis: u64, first: u64, retries: u64, failures: u64) -> Tally {
    Tally { lane: lane(name), at: at(millis), counted: Totals { first, retries, failures } }
}

async fn count(store: &Scheduled, tallies: &[Tally], since: u64) -> Vec<(u64, u64, u64)> {
    let totals = guards(store).tally(tallies.to_vec(), at(since)).await.unwrap();
    totals.into_iter().map(|totals| (totals.first, totals.retries, totals.failures)).collect()
}

fn hold(name: &str, until: u64) -> Hold {
    Hold { lane: lane(name), until: at(until) }
}

/// Facts about the counters, in either place.
async fn all_processes_count_together(pair: &Pair) {
    assert_eq!(count(&pair.one, &[tally("a", 10_000, 1, 2, 3)], 0).await, [(1, 2, 3)]);
    assert_eq!(
        count(&pair.other, &[tally("a", 10_999, 10, 20, 30), tally("b", 1_000, 7, 0, 0)], 0).await,
        [(11, 22, 33), (7, 0, 0)]
    );
    assert_eq!(count(&pair.one, &[tally("a", 12_000, 100, 0, 0)], 0).await, [(111, 22, 33)]);
    assert_eq!(count(&pair.one, &[tally("a", 12_500, 0, 0, 0)], 11_000).await, [(100, 0, 0)], "the window has moved");
    let twice = [tally("c", 20_000, 1, 0, 0), tally("b", 2_000, 0, 1, 0), tally("c", 21_000, 1, 0, 0)];
    assert_eq!(count(&pair.other, &twice, 1_000).await, [(2, 0, 0), (7, 1, 0), (2, 0, 0)]);
    assert_eq!(count(&pair.one, &[], 0).await, []);
}

async fn the_latest_hold_stands_for_all(pair: &Pair) {
    let (one, other) = (guards(&pair.one), guards(&pair.other));
    assert_eq!(one.hold(vec![hold("a", 50_000), hold("b", 20_000)]).await.unwrap(), [at(50_000), at(20_000)]);
    assert_eq!(other.hold(vec![hold("b", 30_000), hold("a", 10_000)]).await.unwrap(), [at(30_000), at(50_000)]);
    assert_eq!(other.held(at(25_000), 10).await.unwrap(), [hold("a", 50_000), hold("b", 30_000)]);
    assert_eq!(one.held(at(25_000), 1).await.unwrap(), [hold("a", 50_000)], "the longest first");
    assert_eq!(one.held(at(30_000), 10).await.unwrap(), [hold("a", 50_000)], "what ends now is over");
    assert_eq!(one.held(at(50_000), 10).await.unwrap(), []);
    assert_eq!(one.hold(Vec::new()).await.unwrap(), []);
}

/// Holds use the server's clock, because the server deletes those that expired long ago.
fn soon() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_millis() as u64 + 600_000
}

#[tokio::test]
async fn counts_add_up_in_redis() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    all_processes_count_together(&pair).await;
    assert_eq!(redis.call(&["KEYS", "*:tally:*"]).lines().count(), 3);
    for key in redis.call(&["KEYS", "*:tally:*"]).lines() {
        let seconds: u64 = redis.call(&["TTL", key]).parse().unwrap();
        assert!((1..=120).contains(&seconds), "{key} is kept for {seconds} s");
    }
}

#[tokio::test]
async fn counts_add_up_in_a_cluster() {
    let cluster = RedisCluster::start();
    let hosts: Vec<String> = cluster.urls().iter().map(|url| url.replace("redis://", "")).collect();
    let pair = Pair::start(&format!("redis+cluster://{}", hosts.join(","))).await;
    all_processes_count_together(&pair).await;
}

#[tokio::test]
async fn counts_add_up_in_the_store_while_redis_is_away() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    redis.kill();
    all_processes_count_together(&pair).await;
    the_latest_hold_stands_for_all(&pair).await;
}

#[tokio::test]
async fn old_seconds_are_dropped() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    for second in [1, 100, 121, 122] {
        count(&pair.one, &[tally("a", second * 1_000, 1, 0, 0)], 0).await;
    }
    let key = redis.call(&["KEYS", "*:tally:*"]);
    let mut seconds: Vec<String> = redis.call(&["HKEYS", &key]).lines().map(str::to_owned).collect();
    seconds.sort();
    assert_eq!(seconds, ["100", "121", "122"]);
}

#[tokio::test]
async fn holds_stand_in_redis_and_in_the_store() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let soon = soon();
    let until = |name: &str, more: u64| Hold { lane: lane(name), until: Timestamp::from_millis(soon + more) };
    let (one, other) = (guards(&pair.one), guards(&pair.other));
    one.hold(vec![until("a", 5), until("b", 2)]).await.unwrap();
    let standing = other.hold(vec![until("b", 3), until("a", 1)]).await.unwrap();
    assert_eq!(standing, [until("b", 3).until, until("a", 5).until]);
    let both = [until("a", 5), until("b", 3)];
    let now = Timestamp::from_millis(soon);
    assert_eq!(other.held(now, 10).await.unwrap(), both);
    assert_eq!(redis.call(&["ZCARD", "redrive:{0}:held"]), "2");
    let seconds: u64 = redis.call(&["TTL", "redrive:{0}:held"]).parse().unwrap();
    assert!((600..=600 + 3_600).contains(&seconds), "kept for {seconds} s");

    redis.kill();
    assert_eq!(other.held(now, 10).await.unwrap(), both, "the store has them too");
    redis.start_again();
    in_use(&pair.other).await;
    assert_eq!(redis.call(&["ZCARD", "redrive:{0}:held"]), "2", "and they are brought back");
    assert_eq!(other.held(now, 10).await.unwrap(), both);
}

#[tokio::test]
async fn holds_that_have_been_over_for_long_are_forgotten() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let soon = Hold { lane: lane("b"), until: Timestamp::from_millis(soon()) };
    guards(&pair.one).hold(vec![hold("a", 50_000), soon.clone()]).await.unwrap();
    assert_eq!(redis.call(&["ZRANGE", "redrive:{0}:held", "0", "-1"]), "default/b");
    assert_eq!(guards(&pair.one).held(at(0), 10).await.unwrap(), [soon]);
}
