//! The indexes of pending tasks: they follow every change, and a task that starts claimed and succeeds does not touch
//! them.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::path::Path;

use redrive_core::Class;
use redrive_store::conformance::samples::{acme, allow, at, claim, id, keep, keep_retries, settle, succeed, task};
use redrive_store::conformance::{samples, workload};
use redrive_store::{ClaimedTask, Store};
use rusqlite::Connection;

use support::{database, onlooker, open};

#[tokio::test]
async fn after_a_long_random_life_every_pending_row_has_the_class_of_its_task() {
    for seed in 21..25 {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        workload::run(&store, seed, 500).await;
        let connection = onlooker(directory.path());
        let count = |condition: &str| -> i64 {
            let sql = format!("SELECT count(*) FROM tasks WHERE {condition}");
            connection.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        assert_eq!(count("status = 2 AND class != (attempt_number > attempts_before)"), 0, "seed {seed}");
        for class in Class::ALL.map(Class::code) {
            assert!(count(&format!("status = 2 AND class = {class}")) > 0, "seed {seed} left nothing in class {class}");
        }
        let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok", "seed {seed}");
    }
}

/// The first page of each index of pending tasks, as stored in the file.
fn pages(directory: &Path) -> Vec<Vec<u8>> {
    let connection = onlooker(directory);
    let size: usize = connection.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    let sql = "SELECT rootpage FROM sqlite_master WHERE name IN ('tasks_due', 'tasks_deadline') ORDER BY name";
    let roots: Vec<usize> =
        connection.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    drop(connection);
    let file = std::fs::read(database(directory)).unwrap();
    roots.into_iter().map(|root| file[(root - 1) * size..root * size].to_vec()).collect()
}

#[tokio::test]
async fn the_common_life_does_not_touch_the_indexes_of_pending_tasks() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    store.close().await;
    let before = pages(directory.path());
    assert_eq!(before.len(), 2);

    let store = open(directory.path());
    let new: Vec<_> = (1..=100).map(|n| task(n).claimed(at(n)).0).collect();
    let leases = keep(&store, new.iter().cloned().map(samples::Sample)).await;
    for (new, lease) in new.into_iter().zip(leases) {
        let claimed = ClaimedTask { task: new.task, request: new.request, lease: lease.unwrap() };
        settle(&store, succeed(&claimed, at(200))).await;
    }
    store.close().await;
    assert!(pages(directory.path()) == before, "an entry was written");

    // A pending task leaves a trace there, even after it is gone.
    let store = open(directory.path());
    keep(&store, [task(101)]).await;
    let claimed = claim(&store, samples::billing(), 1, at(0)).await.remove(0);
    settle(&store, succeed(&claimed, at(1))).await;
    store.close().await;
    assert!(pages(directory.path()).iter().zip(&before).all(|(page, before)| page != before));
}

#[tokio::test]
async fn the_common_life_writes_the_defaults_of_what_only_a_retry_changes() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    keep(&store, [task(1).claimed(at(0)), task(2)]).await;
    keep_retries(&store, [task(3)]).await;
    let connection = onlooker(directory.path());
    let mut select = connection.prepare("SELECT class, dns_failures FROM tasks ORDER BY id").unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(rows.map(Result::unwrap).collect::<Vec<(i64, i64)>>(), [(0, 0), (0, 0), (1, 0)]);
}

#[tokio::test]
async fn a_class_that_is_not_known_is_set_aside_and_the_others_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    keep(&store, [task(1).to("a"), task(2).to("b"), task(3).to("a")]).await;
    store.close().await;
    let changed = Connection::open(database(directory.path()))
        .unwrap()
        .execute("UPDATE tasks SET class = 77 WHERE id = ?1", [id(1).sequence().cast_signed()])
        .unwrap();
    assert_eq!(changed, 1);
    let store = open(directory.path());
    let lanes = store.upkeep().pending_lanes(None, 10).await.unwrap();
    let names: Vec<_> = lanes.iter().map(|lane| lane.lane.dependency.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let aside = store.health().set_aside(9).await.unwrap();
    assert_eq!((aside.count, aside.rows[0].problem.as_str()), (1, "class 77"));
    for lane in lanes {
        assert_eq!(claim(&store, lane.lane, 5, at(0)).await.len(), 1);
    }
}
