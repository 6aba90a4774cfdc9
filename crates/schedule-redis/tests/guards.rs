//! The guards of all processes: in the store, whatever happens to Redis.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::sync::Arc;

use redrive_core::Lane;
use redrive_core::guards::{Controls, Limits};
use redrive_store::conformance::samples::{TENANT, billing, lane, set_controls};
use redrive_store::conformance::shared_guards::{change, read_one, replace_one};
use redrive_store::{GuardKey, News, SharedGuards, StateChange, Store, VersionedState};
use redrive_testbed::{Postgres, Redis};
use support::eventually;
use support::scheduled::{Pair, in_use, postgres, scheduled};

fn guards(store: &dyn Store) -> &dyn SharedGuards {
    store.shared().unwrap().guards()
}

fn announced(lane: Lane, expected: Option<u64>) -> StateChange {
    StateChange { is_announced: true, ..change(GuardKey::Lane(lane), expected, "announced") }
}

async fn until_changed(store: &dyn Store, lane: Lane) {
    let changed = News::GuardsChanged(lane);
    while !store.shared().unwrap().next_news().await.contains(&changed) {}
}

#[tokio::test]
async fn all_processes_share_their_guards_with_redis_and_without_it() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    let key = || GuardKey::Lane(billing());
    let first = replace_one(guards(&pair.one), change(key(), None, "first")).await.unwrap();
    assert_eq!(redis.call(&["KEYS", "*tally*"]) + &redis.call(&["KEYS", "*held*"]), "", "Redis has no guards");
    redis.call(&["FLUSHALL"]);
    let kept = Some(VersionedState { version: first, state: "first".to_owned() });
    assert_eq!(read_one(guards(&pair.other), key()).await, kept);
    redis.kill();
    let second = replace_one(guards(&pair.other), change(key(), Some(first), "second")).await.unwrap();
    let kept = Some(VersionedState { version: second, state: "second".to_owned() });
    assert_eq!(read_one(guards(&pair.one), key()).await, kept);
    assert_eq!(replace_one(guards(&pair.one), change(key(), Some(first), "late")).await, None);
    redis.start_again();
    in_use(&pair.one).await;
    assert_eq!(read_one(guards(&pair.one), key()).await, kept);
}

/// Behind a transaction pooler the store cannot listen.
#[tokio::test]
async fn changed_guards_and_controls_are_announced_over_redis() {
    let redis = Redis::start();
    let pair = Pair::start(&redis.url()).await;
    // A message that is published before the other process listens is lost.
    let subscribers = || async { redis.call(&["PUBSUB", "NUMSUB", "redrive:2:news"]) == "redrive:2:news\n2" };
    eventually("both listen", subscribers).await;
    let changes = vec![
        change(GuardKey::Lane(lane(TENANT, "not-announced")), None, ""),
        announced(lane(TENANT, "not-replaced"), Some(7)),
        announced(billing(), None),
    ];
    guards(&pair.one).replace(changes).await.unwrap();
    assert_eq!(pair.other.shared().unwrap().next_news().await, [News::GuardsChanged(billing())]);
    let controls = Controls { limits: Some(Limits::default()), ..Controls::default() };
    set_controls(&pair.other, lane(TENANT, "mail"), controls.clone()).await;
    // The first news that this process receives: it did not receive its own.
    assert_eq!(pair.one.shared().unwrap().next_news().await, [News::GuardsChanged(lane(TENANT, "mail"))]);
    assert_eq!(pair.one.controls().list(None, 10).await.unwrap(), [(lane(TENANT, "mail"), controls)]);
}

#[tokio::test]
async fn changed_guards_are_announced_by_the_store_while_redis_is_away() {
    let database = Postgres::shared().fresh_database();
    // No server listens there.
    let open = async |node: &str| scheduled(postgres(database.url(), node).await, "redis://127.0.0.1:1", "redrive");
    let (one, other) = (Arc::new(open("one").await), open("other").await);
    // A notification that is sent before the other process listens is lost, so the change is announced repeatedly.
    let announce = {
        let one = one.clone();
        async move {
            let mut version = None;
            loop {
                version = replace_one(guards(&*one), announced(billing(), version)).await;
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::select! {
        () = until_changed(&other, billing()) => {}
        () = announce => {}
    }
}
