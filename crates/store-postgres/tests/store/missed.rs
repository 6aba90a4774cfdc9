//! Whether a process may have missed news: not if it has listened without a break and no other process has stopped.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::{Opened, neighbour, open, open_with, plain, until_listening};
use redrive_core::{Class, PolicyId, TenantId, Timestamp, policy};
use redrive_store::conformance::samples::*;
use redrive_store::{Expected, Heartbeat, News, SharedStore, Store};
use redrive_store_postgres::{Options, PostgresStore};

async fn may_have_missed(store: &PostgresStore, now: Timestamp) -> bool {
    store.shared().unwrap().may_have_missed(now).await.unwrap()
}

/// Repeats the call until the probe has come back and nothing was missed before.
async fn until_nothing_is_missed(store: &PostgresStore, now: Timestamp) {
    while may_have_missed(store, now).await {
        tokio::task::yield_now().await;
    }
}

fn beat() -> Heartbeat {
    Heartbeat {
        started_at: at(0),
        version: "1.2.3".into(),
        address: "127.0.0.1:8620".into(),
        in_flight: 0,
        is_draining: false,
        claims: true,
        clock_ahead_ms: 0,
        every: Duration::from_secs(5),
    }
}

fn seconds(seconds: u64) -> Timestamp {
    at(0).after(Duration::from_secs(seconds))
}

#[tokio::test]
async fn a_break_in_listening_is_noticed() {
    let opened = open("one").await;
    until_nothing_is_missed(&opened.store, at(0)).await;
    let client = plain(opened.database.url()).await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE query LIKE 'LISTEN%' AND datname = current_database()";
    assert_eq!(client.query(end, &[]).await.unwrap().len(), 1);
    while !may_have_missed(&opened.store, at(0)).await {
        tokio::task::yield_now().await;
    }
    until_nothing_is_missed(&opened.store, at(0)).await;
}

#[tokio::test]
async fn one_that_cannot_listen_may_always_have_missed_something() {
    let opened = open_with("one", |options| Options { is_pooled: true, ..options }).await;
    assert!(!may_have_missed(&opened.store, at(0)).await, "it has said nothing yet that it could have heard");
    for _ in 0..20 {
        assert!(may_have_missed(&opened.store, at(0)).await);
    }
}

/// A store with a policy, and a session that enqueues without notifications.
async fn silent_session() -> (Opened, tokio_postgres::Client) {
    let opened = open("one").await;
    let (tenant, id) = (TenantId::default_tenant(), PolicyId::default_policy());
    opened.store.policies().put(tenant, id, policy::Spec::default(), Expected::Anything, at(0)).await.unwrap();
    let client = plain(opened.database.url()).await;
    client.batch_execute("SET redrive.notify = off").await.unwrap();
    (opened, client)
}

#[tokio::test]
async fn what_was_enqueued_without_notifying_is_heard_by_one_process() {
    let (opened, client) = silent_session().await;
    let other = neighbour(&opened, "two").await;
    for target in ["http://a.b/1", "http://a.b/2", "http://c.d/"] {
        client.query_one("SELECT redrive.enqueue(target_url => $1)", &[&target]).await.unwrap();
    }
    may_have_missed(&other, at(0)).await;
    may_have_missed(&opened.store, at(0)).await;
    let heard = other.shared().unwrap().next_news().await;
    let lanes: BTreeSet<String> = heard
        .iter()
        .map(|news| match news {
            News::Due(due) => due.lane.dependency.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(lanes, BTreeSet::from(["http://a.b".to_owned(), "http://c.d".to_owned()]));
    let left: i64 = client.query_one("SELECT count(*) FROM redrive.untold", &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
}

#[tokio::test]
async fn an_invalid_record_makes_a_process_read_all_lanes() {
    let (opened, client) = silent_session().await;
    until_nothing_is_missed(&opened.store, at(0)).await;
    client.batch_execute("INSERT INTO redrive.untold VALUES ('default', 'bad dep', 7)").await.unwrap();
    assert!(may_have_missed(&opened.store, at(0)).await);
    until_nothing_is_missed(&opened.store, at(0)).await;
}

#[tokio::test]
async fn many_enqueues_at_once_leave_their_notes_without_waiting_for_one_another() {
    let (opened, first) = silent_session().await;
    first.batch_execute("BEGIN").await.unwrap();
    first.query_one("SELECT redrive.enqueue(target_url => 'http://a.b/')", &[]).await.unwrap();
    let second = plain(opened.database.url()).await;
    second.batch_execute("SET redrive.notify = off; SET lock_timeout = '1s'").await.unwrap();
    second.query_one("SELECT redrive.enqueue(target_url => 'http://a.b/')", &[]).await.unwrap();
    may_have_missed(&opened.store, at(0)).await;
    assert_eq!(opened.store.shared().unwrap().next_news().await.len(), 1);
    first.batch_execute("COMMIT").await.unwrap();
    may_have_missed(&opened.store, at(0)).await;
    assert_eq!(opened.store.shared().unwrap().next_news().await.len(), 1);
}

#[tokio::test]
async fn who_leaves_or_falls_silent_or_claims_nothing_is_noticed() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    let two: &dyn SharedStore = other.shared().unwrap();
    two.heartbeat(beat(), seconds(0)).await.unwrap();
    opened.store.shared().unwrap().heartbeat(Heartbeat { claims: false, ..beat() }, seconds(0)).await.unwrap();
    // A process does not count itself.
    until_nothing_is_missed(&opened.store, seconds(1)).await;

    assert!(may_have_missed(&opened.store, seconds(20)).await, "silent for 20 s");
    two.heartbeat(beat(), seconds(20)).await.unwrap();
    until_nothing_is_missed(&opened.store, seconds(21)).await;

    two.heartbeat(Heartbeat { claims: false, ..beat() }, seconds(22)).await.unwrap();
    for _ in 0..3 {
        assert!(may_have_missed(&opened.store, seconds(23)).await, "it claims nothing");
    }
    let anew = Heartbeat { started_at: seconds(24), ..beat() };
    two.heartbeat(anew.clone(), seconds(24)).await.unwrap();
    assert!(may_have_missed(&opened.store, seconds(25)).await, "started anew");
    two.heartbeat(anew.clone(), seconds(84)).await.unwrap();
    assert!(may_have_missed(&opened.store, seconds(84)).await, "what it sent before may be committed now");
    until_nothing_is_missed(&opened.store, seconds(86)).await;

    two.leave().await.unwrap();
    assert!(may_have_missed(&opened.store, seconds(87)).await, "it has left");
    until_nothing_is_missed(&opened.store, seconds(160)).await;
}

#[tokio::test]
async fn an_invalid_heartbeat_does_not_stop_the_scan() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    other.shared().unwrap().heartbeat(beat(), at(0)).await.unwrap();
    let client = plain(opened.database.url()).await;
    client.batch_execute("UPDATE redrive.nodes SET every_ms = -1").await.unwrap();
    until_nothing_is_missed(&opened.store, at(0)).await;
}

#[tokio::test]
async fn due_work_that_a_claim_leaves_is_told_to_the_others() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    keep(&*opened.store, (1..=3).map(|n| task(n).due(at(7)))).await;
    until_listening(&opened, 2).await;
    assert_eq!(claim(&*opened.store, billing(), 2, at(8)).await.len(), 2);
    let heard = other.shared().unwrap().next_news().await;
    assert_eq!(heard, [News::Due(lane_due(billing(), Class::First, Some(at(7))))]);
}
