//! Old schema versions: a data directory of each opens, and its tasks continue.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::path::Path;
use std::time::Duration;

use redrive_core::idempotency::{ExecutionId, RecordKey, RequestHash, Reserve, Reserved};
use redrive_core::{Class, RecordName, Status, Timestamp};
use redrive_store::conformance::samples::{
    acme, allow, at, billing, claim, claim_class, id, ids, keep, keep_and_end, keep_retries, lane_due, now_of, retry,
    settle, submit, succeed, task,
};
use redrive_store::conformance::{Snapshot, snapshot};
use redrive_store::{ReplayOutcome, Settled, Store, Submitted};
use redrive_store_sqlite::SqliteStore;
use rusqlite::Connection;

use support::{database, onlooker, open};

const STEPS: [&str; 6] = [
    include_str!("../src/schema/v1.sql"),
    include_str!("../src/schema/v2.sql"),
    include_str!("../src/schema/v3.sql"),
    include_str!("../src/schema/v4.sql"),
    include_str!("../src/schema/v5.sql"),
    include_str!("../src/schema/v6.sql"),
];

/// Creates a database of an old version with these tasks in it. The rows have the columns of that version, with the
/// values that the present version writes into them.
async fn make(directory: &Path, version: usize, fill: impl AsyncFn(&SqliteStore)) {
    let newer = tempfile::tempdir().unwrap();
    let store = open(newer.path());
    fill(&store).await;
    store.close().await;
    std::fs::create_dir_all(directory).unwrap();
    let connection = Connection::open(database(directory)).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    for step in &STEPS[..version] {
        connection.execute_batch(step).unwrap();
    }
    connection.pragma_update(None, "application_id", 0x5244_7276).unwrap();
    connection.pragma_update(None, "user_version", version).unwrap();
    connection.execute("ATTACH ?1 AS newer", [database(newer.path()).to_str().unwrap()]).unwrap();
    let tables = "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
    let tables: Vec<String> =
        connection.prepare(tables).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for table in tables {
        let columns: String = connection
            .query_row("SELECT group_concat(name, ', ') FROM pragma_table_info(?1, 'main')", [&table], |row| row.get(0))
            .unwrap();
        let copy = format!("INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newer.{table}");
        connection.execute_batch(&copy).unwrap();
    }
}

/// The expected state of the tasks below after a restart, which ends all leases.
fn after_restart(mut snapshot: Snapshot) -> Snapshot {
    for claimed in &mut snapshot.in_flight {
        claimed.lease.until = Timestamp::from_millis(0);
    }
    snapshot
}

/// The snapshot without what the tables of these versions had no columns for.
fn as_stored(mut snapshot: Snapshot) -> Snapshot {
    let listed = snapshot.tenants.values_mut().flat_map(|tenant| &mut tenant.tasks).map(|(detail, _)| &mut detail.task);
    let in_flight = snapshot.in_flight.iter_mut().map(|claimed| &mut claimed.task);
    for task in listed.chain(in_flight).chain(&mut snapshot.unannounced) {
        task.correlation_id = None;
        task.trace_parent = None;
    }
    snapshot
}

/// Tasks in every status; pending ones before their first attempt (10 to 12) and before a retry (20 to 22).
async fn fill(store: &SqliteStore) {
    allow(store, acme()).await;
    keep_and_end(store, task(1), Status::Succeeded, at(9)).await;
    keep_and_end(store, task(2).created(at(3)), Status::Exhausted, at(9)).await;
    keep(store, [task(3).claimed(at(0))]).await;
    keep(store, [task(4)]).await;
    store.tasks().cancel_one(acme(), id(4), at(9)).await.unwrap();
    keep(store, (10..13).map(|n| task(n).due(at(n * 10)))).await;
    keep_retries(store, (20..23).map(|n| task(n).due(at(n)).deadline(at(10_000 + n)))).await;
}

#[tokio::test]
async fn a_database_of_an_old_version_is_brought_up_to_date_with_all_that_is_in_it() {
    for version in 1..=STEPS.len() {
        let directory = tempfile::tempdir().unwrap();
        let before = std::cell::OnceCell::new();
        make(directory.path(), version, async |store| {
            fill(store).await;
            before.set(snapshot(store, [acme()]).await).unwrap();
        })
        .await;

        let store = open(directory.path());
        let mut expected = as_stored(after_restart(before.into_inner().unwrap()));
        if version == 1 {
            expected.unannounced.clear();
        }
        snapshot(&store, [acme()]).await.assert_is(&expected, &format!("after version {version}"));
        let due = [lane_due(billing(), Class::First, Some(at(100))), lane_due(billing(), Class::Retry, Some(at(20)))];
        assert_eq!(store.upkeep().pending_lanes(None, 10).await.unwrap(), due, "version {version}");
    }
}

#[tokio::test]
async fn the_tasks_of_an_old_version_go_on() {
    for version in 1..=STEPS.len() {
        let directory = tempfile::tempdir().unwrap();
        make(directory.path(), version, fill).await;
        let store = open(directory.path());
        let first = claim_class(&store, billing(), Class::First, 2, at(5_000)).await;
        assert_eq!(ids(&first), [id(10), id(11)], "version {version}");
        let retries = claim_class(&store, billing(), Class::Retry, 1, at(5_000)).await;
        assert_eq!(ids(&retries), [id(20)], "version {version}");
        assert_eq!(settle(&store, retry(&first[0], at(5_001), at(6_000))).await, Settled::Done(Status::Pending));
        for claimed in [&first[1], &retries[0]] {
            assert_eq!(settle(&store, succeed(claimed, at(5_001))).await, Settled::Done(Status::Succeeded));
        }
        let rescued = store.upkeep().expired_leases(at(0), 10).await.unwrap();
        assert_eq!(ids(&rescued), [id(3)], "version {version}");
        settle(&store, retry(&rescued[0], at(5_002), at(5_002))).await;

        let overdue = store.upkeep().end_overdue(at(10_021), 10).await.unwrap();
        assert_eq!(overdue.ended.iter().map(|task| task.id).collect::<Vec<_>>(), [id(21)], "version {version}");
        assert_eq!(overdue.next_deadline, Some(at(10_022)), "version {version}");

        let dead = now_of(&store, &task(2).0.task).await;
        assert_eq!((dead.run, dead.attempts_before, dead.run_started_at, dead.dns_failures), (1, 0, at(3), 0));
        let ReplayOutcome::Done(replayed) = store.tasks().replay_one(acme(), id(2), at(11_000)).await.unwrap() else {
            panic!("not dead")
        };
        assert_eq!(replayed.deadline_at.since(replayed.run_started_at), dead.deadline_at.since(at(3)));
        store.close().await;

        let store = open(directory.path());
        assert_eq!(now_of(&store, &dead).await, *replayed);
        let claimed = claim(&store, billing(), 10, at(20_000)).await;
        assert_eq!(ids(&claimed), [id(12), id(2), id(22), id(3), id(10)], "version {version}");
        for claimed in &claimed {
            assert_eq!(settle(&store, succeed(claimed, at(20_001))).await, Settled::Done(Status::Succeeded));
        }
        assert_eq!(store.upkeep().pending_lanes(None, 10).await.unwrap(), [], "version {version}");
    }
}

#[tokio::test]
async fn a_replayed_task_of_an_old_version_is_in_the_class_of_its_run() {
    for version in 2..=STEPS.len() {
        let directory = tempfile::tempdir().unwrap();
        make(directory.path(), version, async |store| {
            allow(store, acme()).await;
            for n in [1, 2] {
                keep_and_end(store, task(n), Status::Failed, at(9)).await;
                store.tasks().replay_one(acme(), id(n), at(10 + n)).await.unwrap();
            }
            let held = claim(store, billing(), 1, at(50)).await.remove(0);
            settle(store, retry(&held, at(51), at(70))).await;
        })
        .await;
        let store = open(directory.path());
        let due = [lane_due(billing(), Class::First, Some(at(12))), lane_due(billing(), Class::Retry, Some(at(70)))];
        assert_eq!(store.upkeep().pending_lanes(None, 10).await.unwrap(), due, "version {version}");
        let indexes = "SELECT group_concat(name, ' ') FROM (
             SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'tasks' ORDER BY name)";
        let indexes: String = onlooker(directory.path()).query_row(indexes, [], |row| row.get(0)).unwrap();
        assert_eq!(indexes, "tasks_dead_letters tasks_deadline tasks_due tasks_in_flight");
    }
}

#[tokio::test]
async fn an_attempt_of_an_old_version_has_its_number_in_all_for_its_number_in_the_run() {
    // Version 4 has a column for it.
    for version in 2..=3 {
        let directory = tempfile::tempdir().unwrap();
        make(directory.path(), version, async |store| {
            allow(store, acme()).await;
            keep_and_end(store, task(1), Status::Failed, at(9)).await;
            store.tasks().replay_one(acme(), id(1), at(10)).await.unwrap();
            let again = claim(store, billing(), 1, at(11)).await.remove(0);
            settle(store, retry(&again, at(12), at(13))).await;
        })
        .await;
        let store = open(directory.path());
        let third = claim(&store, billing(), 1, at(14)).await.remove(0);
        settle(&store, succeed(&third, at(15))).await;
        let log = store.reads().attempts(acme(), id(1), 0, 10).await.unwrap().unwrap();
        let numbers: Vec<_> = log.iter().map(|attempt| (attempt.number, attempt.number_in_run)).collect();
        assert_eq!(numbers, [(1, 1), (2, 2), (3, 2)], "version {version}");
    }
}

#[tokio::test]
async fn a_database_of_an_old_version_keeps_its_keys_and_takes_records() {
    for version in 1..=STEPS.len() {
        let directory = tempfile::tempdir().unwrap();
        make(directory.path(), version, fill).await;
        let key = RecordKey {
            tenant: acme(),
            operation: "pay".parse().unwrap(),
            name: RecordName::try_new("key-10").unwrap(),
        };
        let ask = |execution| Reserve {
            request_hash: RequestHash([1; 32]),
            execution: ExecutionId::from_u128(execution),
            lease: Duration::from_secs(60),
            retention: Duration::from_secs(60),
            is_complete: false,
        };
        for execution in [1, 2] {
            let store = open(directory.path());
            let again = submit(&store, [task(10).due(at(100))]).await;
            assert!(matches!(&again[..], [Submitted::Replayed(task)] if task.id == id(10)), "version {version}");
            let reserved = store.records().reserve_one(key.clone(), ask(execution), at(0)).await.unwrap();
            assert_eq!(matches!(reserved, Reserved::Granted { .. }), execution == 1, "version {version}");
            store.close().await;
        }
    }
}
