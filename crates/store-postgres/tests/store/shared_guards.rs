//! Guards that several processes share: concurrent changes, announcements, and what a change costs.

use std::time::Duration;

use redrive_core::Lane;
use redrive_core::guards::{Controls, Limits};
use redrive_store::conformance::samples::*;
use redrive_store::conformance::shared_guards::{change, read_one, replace_one};
use redrive_store::{GuardKey, News, SharedGuards, StateChange, Store, VersionedState};
use redrive_store_postgres::{Options, PostgresStore};
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::support::{neighbour, open, open_with, plain, until_gone, until_listening};

fn guards(store: &PostgresStore) -> &dyn SharedGuards {
    store.shared().unwrap().guards()
}

fn of_lane(name: &str) -> GuardKey {
    GuardKey::Lane(lane(TENANT, name))
}

/// Counts a state up `times` times. A change that another process was faster with is made again.
async fn count_up(guards: &dyn SharedGuards, key: &GuardKey, times: usize) {
    for _ in 0..times {
        loop {
            let found = read_one(guards, key.clone()).await;
            let count = found.as_ref().map_or(0, |found| found.state.parse::<usize>().unwrap());
            let version = found.map(|found| found.version);
            if replace_one(guards, change(key.clone(), version, &(count + 1).to_string())).await.is_some() {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_changes_that_two_processes_make_at_once_none_is_lost() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    let origin = GuardKey::Origin(acme(), "https://billing.example".to_owned());
    for key in [of_lane("billing"), origin] {
        let (one, two) = (count_up(guards(&opened.store), &key, 200), count_up(guards(&other), &key, 200));
        tokio::join!(one, two);
        assert_eq!(read_one(guards(&opened.store), key).await.unwrap().state, "400");
    }
}

/// Waits until this many statements wait for locks.
async fn until_waiting(client: &Client, statements: usize) {
    let waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while client.query(waiting, &[]).await.unwrap().len() < statements {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_state_that_another_process_is_changing_counts_as_changed_once_that_is_committed() {
    let opened = open("one").await;
    let guards = guards(&opened.store);
    let version = replace_one(guards, change(of_lane("a"), None, "first")).await.unwrap();
    let (mut client, watcher) = (plain(opened.database.url()).await, plain(opened.database.url()).await);
    // the other transaction's statement, whether it is committed, whether the state is replaced
    let update = "UPDATE redrive.shared_guards SET version = version + 1000, state = 'other'";
    for (statement, commits, is_replaced) in [
        (update, false, true),
        (update, true, false),
        ("DELETE FROM redrive.shared_guards", false, true),
        ("DELETE FROM redrive.shared_guards", true, false),
    ] {
        let before = read_one(guards, of_lane("a")).await.unwrap();
        let open = client.transaction().await.unwrap();
        open.execute(statement, &[]).await.unwrap();
        let end = async {
            until_waiting(&watcher, 1).await;
            match commits {
                true => open.commit().await.unwrap(),
                false => open.rollback().await.unwrap(),
            }
        };
        let change = change(of_lane("a"), Some(before.version), "mine");
        let (replaced, ()) = tokio::join!(replace_one(guards, change), end);
        assert_eq!(replaced.is_some(), is_replaced, "{statement}, committed: {commits}");
        assert!(replaced.is_none_or(|new| new > version));
    }
}

#[tokio::test]
async fn a_state_that_another_process_makes_at_the_same_time_is_left_as_it_is() {
    let opened = open("one").await;
    let guards = guards(&opened.store);
    let (mut client, watcher) = (plain(opened.database.url()).await, plain(opened.database.url()).await);
    let insert = "INSERT INTO redrive.shared_guards VALUES ('acme', 0, 'a', 7, 'other', true, 0)";
    let open = client.transaction().await.unwrap();
    open.execute(insert, &[]).await.unwrap();
    let end = async {
        until_waiting(&watcher, 1).await;
        open.commit().await.unwrap();
    };
    let (replaced, ()) = tokio::join!(replace_one(guards, change(of_lane("a"), None, "mine")), end);
    assert_eq!(replaced, None);
    assert_eq!(read_one(guards, of_lane("a")).await, Some(VersionedState { version: 7, state: "other".to_owned() }));
}

#[tokio::test]
async fn states_are_locked_in_the_order_of_their_keys_whatever_the_order_of_the_changes() {
    let opened = open("one").await;
    let guards = guards(&opened.store);
    let mut changes: Vec<_> = ["a", "b", "c"].map(|name| change(of_lane(name), None, "first")).into();
    let versions = guards.replace(changes.clone()).await.unwrap();
    for (change, version) in changes.iter_mut().zip(versions) {
        change.expected = version;
    }
    changes.reverse();
    let (mut client, mut other) = (plain(opened.database.url()).await, plain(opened.database.url()).await);
    let open = client.transaction().await.unwrap();
    open.execute("SELECT FROM redrive.shared_guards WHERE name = 'b' FOR UPDATE", &[]).await.unwrap();
    let look = async {
        until_waiting(&other, 1).await;
        let mut is_locked = Vec::new();
        for name in ["a", "c"] {
            let look = other.transaction().await.unwrap();
            let lock = "SELECT FROM redrive.shared_guards WHERE name = $1 FOR UPDATE NOWAIT";
            is_locked.push(look.execute(lock, &[&name]).await.is_err());
        }
        open.rollback().await.unwrap();
        is_locked
    };
    let (replaced, is_locked) = tokio::join!(guards.replace(changes), look);
    assert_eq!(is_locked, [true, false]);
    assert!(replaced.unwrap().iter().all(Option::is_some));
}

#[tokio::test]
async fn a_state_that_is_being_replaced_is_not_deleted() {
    let opened = open("one").await;
    let guards = guards(&opened.store);
    guards.replace(["a", "b"].map(|name| change(of_lane(name), None, "first")).into()).await.unwrap();
    let mut client = plain(opened.database.url()).await;
    let open = client.transaction().await.unwrap();
    open.execute("UPDATE redrive.shared_guards SET version = version + 1000 WHERE name = 'a'", &[]).await.unwrap();
    assert_eq!(guards.clean(at(9_000_000), 10).await.unwrap(), 1);
    open.commit().await.unwrap();
    assert!(read_one(guards, of_lane("a")).await.is_some());
}

/// Waits until due work of this lane is announced; returns the lanes whose changed guards were announced before.
async fn changed_guards_before(store: &PostgresStore, marker: &Lane) -> Vec<Lane> {
    let mut changed = Vec::new();
    loop {
        for news in store.shared().unwrap().next_news().await {
            match news {
                News::Due(due) if due.lane == *marker => return changed,
                News::GuardsChanged(lane) => changed.push(lane),
                News::Due(_) | News::CancelRequested(..) => {}
            }
        }
    }
}

#[tokio::test]
async fn an_announced_change_reaches_the_other_processes_and_not_its_own() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    until_listening(&opened, 2).await;
    let announced = |key, expected| StateChange { is_announced: true, ..change(key, expected, "state") };
    let changes = vec![
        announced(of_lane("a"), None),
        announced(GuardKey::Origin(acme(), "https://origin.example".to_owned()), None),
        change(of_lane("not-announced"), None, "state"),
        announced(of_lane("not-replaced"), Some(7)),
        announced(of_lane("b"), None),
    ];
    guards(&opened.store).replace(changes).await.unwrap();
    // Changes of guards are sent before due work that is announced later.
    let marker = lane(TENANT, "marker");
    keep(&*opened.store, [task(1).to("marker")]).await;
    assert_eq!(changed_guards_before(&other, &marker).await, [lane(TENANT, "a"), lane(TENANT, "b")]);
    let own_marker = lane(TENANT, "own-marker");
    keep(&*other, [task(2).to("own-marker")]).await;
    assert_eq!(changed_guards_before(&opened.store, &own_marker).await, []);
}

#[tokio::test]
async fn what_an_operator_sets_for_a_lane_is_announced() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    until_listening(&opened, 2).await;
    let controls = Controls { limits: Some(Limits::default()), ..Controls::default() };
    let announced = async |controls: Controls| {
        set_controls(&*opened.store, billing(), controls).await;
        assert_eq!(other.shared().unwrap().next_news().await, [News::GuardsChanged(billing())]);
    };
    announced(controls).await;
    announced(Controls::default()).await;
}

#[tokio::test]
async fn guards_are_changed_and_announced_while_readers_use_all_of_their_connections() {
    let change_options = |options| Options { lock_timeout: Duration::from_secs(20), ..options };
    let opened = open_with("one", change_options).await;
    let other = neighbour(&opened, "two").await;
    until_listening(&opened, 2).await;
    let mut client = plain(opened.database.url()).await;
    let open = client.transaction().await.unwrap();
    open.batch_execute("LOCK TABLE redrive.policies, redrive.policy_versions").await.unwrap();
    let mut reads = JoinSet::new();
    for _ in 0..10 {
        let store = opened.store.clone();
        reads.spawn(async move { store.policies().list(acme(), None, 10).await.map(drop) });
    }
    let watcher = plain(opened.database.url()).await;
    // Of 12 connections, 3 are for readers.
    until_waiting(&watcher, 3).await;
    let announced = StateChange { is_announced: true, ..change(of_lane("a"), None, "state") };
    assert!(replace_one(guards(&opened.store), announced).await.is_some());
    assert_eq!(other.shared().unwrap().next_news().await, [News::GuardsChanged(lane(TENANT, "a"))]);
    assert!(reads.try_join_next().is_none(), "all readers still wait");
    open.rollback().await.unwrap();
    while let Some(read) = reads.join_next().await {
        read.unwrap().unwrap();
    }
}

#[tokio::test]
async fn an_unreadable_lane_is_skipped_and_the_others_fill_the_page() {
    let opened = open("one").await;
    let guards = guards(&opened.store);
    let changes = ["b", "d", "f"].map(|name| StateChange { is_closed: false, ..change(of_lane(name), None, "open") });
    guards.replace(changes.into()).await.unwrap();
    let client = plain(opened.database.url()).await;
    for (tenant, name) in [("acme", "a b"), ("acme", "c d"), ("no tenant", "x")] {
        let insert = "INSERT INTO redrive.shared_guards VALUES ($1, 0, $2, 1, '', false, 0)";
        client.execute(insert, &[&tenant, &name]).await.unwrap();
    }
    let lanes = ["b", "d", "f"].map(|name| lane(TENANT, name));
    let listed = async |after: Option<Lane>, limit| {
        let listed = guards.not_closed(after, limit).await.unwrap();
        listed.into_iter().map(|(lane, _)| lane).collect::<Vec<_>>()
    };
    assert_eq!(listed(None, 10).await, lanes);
    assert_eq!(listed(None, 2).await, lanes[..2]);
    assert_eq!(listed(Some(lanes[1].clone()), 2).await, lanes[2..]);
}

#[tokio::test]
async fn a_change_that_leaves_the_breaker_as_it_was_changes_no_index() {
    let opened = open("one").await;
    let keys: Vec<GuardKey> = (0..20).map(|n| of_lane(&n.to_string())).collect();
    let state = "x".repeat(1_000);
    for _ in 0..20 {
        let found = guards(&opened.store).read(keys.clone()).await.unwrap();
        let next = |(key, found): (&GuardKey, Option<VersionedState>)| {
            change(key.clone(), found.map(|found| found.version), &state)
        };
        let answers = guards(&opened.store).replace(keys.iter().zip(found).map(next).collect()).await.unwrap();
        assert!(answers.iter().all(Option::is_some));
    }
    opened.store.close().await;
    let client = plain(opened.database.url()).await;
    // A session's counts are complete when it has ended.
    until_gone(&client, "redrive one").await;
    let counts = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'shared_guards'";
    let counts = client.query_one(counts, &[]).await.unwrap();
    let (updates, within_the_page): (i64, i64) = (counts.get(0), counts.get(1));
    assert_eq!(updates, 20 * 19);
    assert!(within_the_page > updates / 2, "{within_the_page} of {updates}");
}
