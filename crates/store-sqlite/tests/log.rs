//! The write-ahead log: bounded under load, not written when idle.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redrive_store::Store;
use redrive_store::conformance::samples::{acme, allow, claim, keep, lane, task};
use redrive_store_sqlite::{Options, SqliteStore};

use support::onlooker;

fn log_bytes(directory: &Path) -> u64 {
    std::fs::metadata(directory.join("redrive.db-wal")).map_or(0, |file| file.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_stays_near_its_limit_under_sustained_load() {
    const LIMIT: u64 = 1024 * 1024;
    const CALLERS: u64 = 64;
    const TASKS: u64 = 10_000;
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        wal_limit_bytes: LIMIT,
        checkpoint_after: Duration::from_millis(2),
        ..Options::new(directory.path())
    };
    let store = Arc::new(SqliteStore::open(options).unwrap());
    allow(&*store, acme()).await;
    let body = "x".repeat(10_000);
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (store, body) = (Arc::clone(&store), body.clone());
            tokio::spawn(async move {
                for n in (caller..TASKS).step_by(CALLERS as usize) {
                    keep(&*store, [task(n).body(body.clone())]).await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    // A hundred million bytes of bodies were written to it.
    let bytes = log_bytes(directory.path());
    assert!(bytes < 20 * LIMIT, "the log has {bytes} bytes");
    store.close().await;
}

#[tokio::test]
async fn a_long_read_delays_the_log_and_no_other_call() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        wal_limit_bytes: 64 * 1024,
        checkpoint_after: Duration::from_millis(1),
        ..Options::new(directory.path())
    };
    let store = SqliteStore::open(options).unwrap();
    allow(&store, acme()).await;
    let reader = onlooker(directory.path());
    reader.execute_batch("BEGIN; SELECT count(*) FROM tasks").unwrap();
    for n in 0..200 {
        keep(&store, [task(n).body("x".repeat(10_000))]).await;
    }
    let seen: u64 = reader.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 0, "a reader sees the moment at which it began");
    reader.execute_batch("COMMIT").unwrap();
    let seen: u64 = reader.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 200);
}

/// How often each of this process's threads with our names was woken up, by thread.
fn wake_ups() -> BTreeMap<String, u64> {
    let mut wake_ups = BTreeMap::new();
    for thread in std::fs::read_dir("/proc/self/task").unwrap() {
        let path = thread.unwrap().path();
        let name = std::fs::read_to_string(path.join("comm")).unwrap();
        if name.starts_with("redrive-") {
            let status = std::fs::read_to_string(path.join("status")).unwrap();
            let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
            let count = switches.map(|line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum();
            wake_ups.insert(path.display().to_string(), count);
        }
    }
    wake_ups
}

#[tokio::test]
async fn an_idle_store_does_nothing_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { checkpoint_after: Duration::from_millis(5), ..Options::new(directory.path()) };
    let store = SqliteStore::open(options).unwrap();
    allow(&store, acme()).await;
    keep(&store, [task(1)]).await;
    // The remaining work of these commits is done soon; after that no thread wakes up.
    let mut before = wake_ups();
    assert!(before.len() >= 6, "{before:?}");
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = wake_ups();
        if now == before {
            return;
        }
        before = now;
    }
    panic!("its threads never come to rest: {before:?}");
}

#[tokio::test]
async fn a_call_that_changes_nothing_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { checkpoint_after: Duration::from_secs(3_600), ..Options::new(directory.path()) };
    let store = SqliteStore::open(options).unwrap();
    allow(&store, acme()).await;
    keep(&store, [task(1)]).await;
    let before = log_bytes(directory.path());
    for _ in 0..10 {
        let nothing = claim(&store, lane("acme", "https://other.example"), 5, redrive_core::Timestamp::MAX).await;
        assert_eq!(nothing, []);
        store.tasks().submit(vec![task(1).0]).await.unwrap();
        store.tasks().settle(vec![]).await.unwrap();
    }
    assert_eq!(log_bytes(directory.path()), before);
}
