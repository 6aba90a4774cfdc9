//! Two processes work off their tasks while Redis is repeatedly flushed, killed, stopped and loses keys: every call
//! succeeds, nothing is claimed twice under one token, and every task ends.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use redrive_core::{Class, Status, TaskId};
use redrive_schedule_redis::Scheduled;
use redrive_store::conformance::samples::*;
use redrive_store::{ClaimRequest, ClaimedTask, Settled, Store};
use redrive_testbed::{Redis, RedisCluster};
use support::scheduled::{Pair, in_use};
use support::{due_of_lane, eventually};

const TASKS: u64 = 3_000;
const LANES: [&str; 3] = ["a", "b", "c"];

/// What all workers did.
#[derive(Default)]
struct Ledger {
    claims: Mutex<BTreeSet<(TaskId, u64)>>,
    succeeded: AtomicUsize,
}

impl Ledger {
    fn is_done(&self) -> bool {
        self.succeeded.load(Ordering::SeqCst) == TASKS as usize
    }

    fn note(&self, claimed: &ClaimedTask) {
        let is_new = self.claims.lock().unwrap().insert((claimed.task.id, claimed.lease.token.0));
        assert!(is_new, "{} was claimed twice under token {}", claimed.task.id, claimed.lease.token.0);
    }
}

/// A claim of due tasks of all lanes.
fn everything_due(slots: usize, ahead: usize) -> ClaimRequest {
    let rooms =
        LANES.into_iter().flat_map(|name| Class::ALL.map(|class| room(lane(TENANT, name), class, slots, ahead)));
    request(rooms, at(10))
}

/// Claims and settles until everything has ended: each task fails once, and is due again at once.
async fn work(store: Arc<Scheduled>, ledger: Arc<Ledger>) {
    while !ledger.is_done() {
        let claims = store.tasks().claim(everything_due(4, 3)).await.unwrap();
        if claims.claimed.is_empty() {
            // The engine does this every few seconds.
            store.upkeep().pending_lanes(None, 100).await.unwrap();
        }
        let settle = |claimed: &ClaimedTask| match claimed.task.attempt_number {
            1 => retry(claimed, at(10), at(10)),
            _ => succeed(claimed, at(10)),
        };
        claims.claimed.iter().for_each(|claimed| ledger.note(claimed));
        for settled in store.tasks().settle(claims.claimed.iter().map(settle).collect()).await.unwrap() {
            match settled {
                Settled::Done(Status::Succeeded) => drop(ledger.succeeded.fetch_add(1, Ordering::SeqCst)),
                settled => assert_eq!(settled, Settled::Done(Status::Pending)),
            }
        }
    }
}

/// Runs two processes, and applies each of these mishaps to Redis meanwhile.
async fn survive(pair: Pair, mishaps: Vec<Mishap>) {
    keep(&pair.one, (1..=TASKS).map(|n| task(n).to(LANES[n as usize % LANES.len()]))).await;
    let (one, other, ledger) = (Arc::new(pair.one), Arc::new(pair.other), Arc::new(Ledger::default()));
    let working: Vec<_> = [&one, &other, &one, &other]
        .map(|store| tokio::spawn(work(store.clone(), ledger.clone())))
        .into_iter()
        .collect();
    let count = mishaps.len();
    for (number, (name, mishap)) in mishaps.into_iter().enumerate() {
        let share = TASKS as usize * number / count;
        let progress = || async { ledger.succeeded.load(Ordering::SeqCst) >= share };
        eventually(&format!("there is progress before {name}"), progress).await;
        mishap();
    }
    for worker in working {
        worker.await.unwrap();
    }
    assert_eq!(ledger.claims.lock().unwrap().len(), 2 * TASKS as usize, "one claim for each attempt");
    assert_eq!(counts(&*one, acme()).await, [0, 0, TASKS, 0, 0, 0]);
    // The state of a partition is found out by calls for its lanes.
    eventually("the index is in use again", || async {
        one.tasks().claim(everything_due(1, 0)).await.unwrap();
        one.in_use().complete == 256
    })
    .await;
    in_use(&other).await;
}

/// The name of a mishap of Redis, and the mishap.
type Mishap = (&'static str, Box<dyn Fn() + Send>);

fn mishap(name: &'static str, mishap: impl Fn() + Send + 'static) -> Mishap {
    (name, Box::new(mishap))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_whatever_happens_to_a_server() {
    let redis = Arc::new(Redis::start());
    let pair = Pair::start(&redis.url()).await;
    let with = |action: fn(&Redis)| {
        let redis = redis.clone();
        move || action(&redis)
    };
    let flush = || mishap("a flush", with(|redis| drop(redis.call(&["FLUSHALL"]))));
    let mishaps = vec![
        flush(),
        mishap("an eviction", with(|redis| drop(redis.call(&["DEL", &due_of_lane(&lane(TENANT, "a"), Class::First)])))),
        mishap(
            "a death",
            with(|redis| {
                redis.kill();
                redis.start_again();
            }),
        ),
        mishap("the loss of scripts", with(|redis| drop(redis.call(&["SCRIPT", "FLUSH"])))),
        mishap("a stop", with(Redis::pause)),
        mishap("the end of it", with(Redis::resume)),
        flush(),
        mishap(
            "theft",
            with(|redis| drop(redis.call(&["ZPOPMIN", &due_of_lane(&lane(TENANT, "b"), Class::Retry), "20"]))),
        ),
        mishap("the loss of connections", with(|redis| drop(redis.call(&["CLIENT", "KILL", "TYPE", "normal"])))),
        flush(),
    ];
    survive(pair, mishaps).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_whatever_happens_to_a_cluster() {
    let cluster = Arc::new(RedisCluster::start());
    let hosts: Vec<String> = cluster.urls().iter().map(|url| url.replace("redis://", "")).collect();
    let pair = Pair::start(&format!("redis+cluster://{}", hosts.join(","))).await;
    let with = |number: usize, action: fn(&Redis)| {
        let cluster = cluster.clone();
        move || action(&cluster.nodes()[number])
    };
    let flush = |number| mishap("a flush", with(number, |redis| drop(redis.call(&["FLUSHALL"]))));
    let mishaps = vec![
        flush(0),
        flush(1),
        flush(2),
        mishap(
            "a death",
            with(1, |redis| {
                redis.kill();
                redis.start_again();
            }),
        ),
        mishap("a stop", with(2, Redis::pause)),
        mishap("the end of it", with(2, Redis::resume)),
        flush(2),
    ];
    survive(pair, mishaps).await;
}
