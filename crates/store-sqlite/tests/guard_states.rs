//! The states of guards: they are written with other changes and cause no commit of their own.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use redrive_core::Lane;
use redrive_core::guards::{Controls, Limits};
use redrive_store::conformance::samples::{
    acme, allow, at, billing, claim, controls_of, guard_snapshot, keep, lane, set_controls, task,
};
use redrive_store::{GuardState, Store};
use redrive_store_sqlite::SqliteStore;
use rusqlite::Connection;

use support::{copy, database, onlooker, open};

fn state(lane: Lane, number: u32) -> GuardState {
    GuardState { lane, state: Some(guard_snapshot(number)) }
}

fn keep_states(store: &SqliteStore, states: Vec<GuardState>) {
    store.guard_states().unwrap().keep(states);
}

async fn kept(store: &SqliteStore) -> Vec<GuardState> {
    store.guard_states().unwrap().kept(None, 10).await.unwrap()
}

#[tokio::test]
async fn a_state_causes_no_commit_and_waits_for_a_call_that_changes_something() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    keep(&store, [task(1)]).await;
    let onlooker = onlooker(directory.path());
    // Changes with every commit of another connection that wrote something.
    let data_version = || onlooker.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = data_version();
    keep_states(&store, vec![state(billing(), 1)]);
    assert_eq!(kept(&store).await, []);
    // Calls of the writer that change nothing.
    assert_eq!(claim(&store, lane("acme", "nothing-is-due"), 1, at(0)).await, []);
    store.upkeep().end_overdue(at(0), 10).await.unwrap();
    assert_eq!(kept(&store).await, []);
    assert_eq!(data_version(), before);
    keep(&store, [task(2)]).await;
    assert_eq!(kept(&store).await, [state(billing(), 1)]);
    assert_ne!(data_version(), before);
}

#[tokio::test]
async fn states_and_controls_survive_reopening_and_crashes() {
    let (directory, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(directory.path());
    let limits = Limits { concurrency: Some(3), ..Limits::default() };
    let controls = Controls { limits: Some(limits), ..Controls::default() };
    keep_states(&store, vec![state(billing(), 1), state(lane("globex", "mail"), 2)]);
    set_controls(&store, billing(), controls.clone()).await;
    copy(directory.path(), crashed.path());
    store.close().await;
    for store in [open(directory.path()), open(crashed.path())] {
        assert_eq!(kept(&store).await, [state(billing(), 1), state(lane("globex", "mail"), 2)]);
        assert_eq!(store.controls().list(None, 10).await.unwrap(), [(billing(), controls.clone())]);
    }
}

#[tokio::test]
async fn a_state_whose_transaction_was_rolled_back_is_written_by_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    keep(&store, [task(1)]).await;
    store.close().await;
    // Refuses the state itself, as long as there are two tasks.
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON guard_states WHEN (SELECT count(*) FROM tasks) = 2
                  BEGIN SELECT RAISE(ABORT, 'refused'); END";
    Connection::open(database(directory.path())).unwrap().execute_batch(refuse).unwrap();

    let store = open(directory.path());
    keep_states(&store, vec![state(billing(), 1), state(lane("globex", "mail"), 1)]);
    // The first call fails before the states are written, and the second one while they are.
    store.tasks().submit(vec![task(1).key("another-key").0]).await.unwrap_err();
    store.tasks().submit(vec![task(2).0]).await.unwrap_err();
    assert_eq!(kept(&store).await, []);
    keep_states(&store, vec![state(billing(), 2)]);
    keep(&store, [task(2), task(3)]).await;
    assert_eq!(kept(&store).await, [state(billing(), 2), state(lane("globex", "mail"), 1)]);
}

#[tokio::test]
async fn unreadable_states_and_controls_are_skipped_and_the_others_fill_the_page() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let limits = Limits { concurrency: Some(3), ..Limits::default() };
    let controls = Controls { limits: Some(limits), ..Controls::default() };
    let lanes = ["b", "d", "f"].map(|name| lane("acme", name));
    for lane in lanes.clone() {
        keep_states(&store, vec![state(lane.clone(), 1)]);
        set_controls(&store, lane, controls.clone()).await;
    }
    store.close().await;
    let connection = Connection::open(database(directory.path())).unwrap();
    for (dependency, value) in [("a", "'{'"), ("bad dep", "'{}'"), ("c", "x'FFFE'"), ("e", "5"), ("g", "''")] {
        for table in ["guard_states", "lane_controls"] {
            let insert = format!("INSERT INTO {table} VALUES ('acme', ?1, {value})");
            connection.execute(&insert, [dependency]).unwrap();
        }
    }
    drop(connection);

    let store = open(directory.path());
    let guards = store.guard_states().unwrap();
    let states = lanes.clone().map(|lane| state(lane, 1));
    assert_eq!(guards.kept(None, 10).await.unwrap(), states);
    assert_eq!(guards.kept(None, 2).await.unwrap(), states[..2]);
    let expected = lanes.clone().map(|lane| (lane, controls.clone()));
    assert_eq!(store.controls().list(None, 10).await.unwrap(), expected);
    assert_eq!(store.controls().list(Some(lanes[1].clone()), 2).await.unwrap(), expected[2..]);
    // A change replaces what cannot be read, as if nothing had been set.
    for name in ["a", "c", "e", "g"] {
        let replace = async |expected: Controls| {
            store.controls().replace(lane("acme", name), expected, controls.clone()).await.unwrap()
        };
        assert!(!replace(controls.clone()).await, "{name}");
        assert!(replace(Controls::default()).await, "{name}");
        assert_eq!(controls_of(&store, &lane("acme", name)).await, controls, "{name}");
    }
}
