//! Who may open what.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use redrive_core::Status;
use redrive_store::conformance::samples::{
    acme, allow, at, billing, claim, id, keep, keep_and_end, now_of, retry, settle, succeed, task,
};
use redrive_store::conformance::snapshot;
use redrive_store::{Replay, Settled, Store};
use redrive_store_sqlite::{OpenError, Options, SqliteStore};
use rusqlite::Connection;

use support::{copy, database, onlooker, open};

fn contents(directory: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap());
    files.map(|file| (file.file_name(), std::fs::read(file.path()).unwrap())).collect()
}

fn refusal(directory: &Path) -> OpenError {
    SqliteStore::open(Options::new(directory)).unwrap_err()
}

#[tokio::test]
async fn a_second_store_is_refused_with_the_directorys_name_and_the_first_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let error = refusal(directory.path());
    assert!(matches!(&error, OpenError::InUse { path } if path == directory.path()), "{error:?}");
    assert!(error.to_string().contains(directory.path().to_str().unwrap()), "{error}");
    store.check().await.unwrap();
    store.close().await;
    open(directory.path());
}

#[tokio::test]
async fn a_missing_directory_is_made_for_its_owner_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("var/lib/redrive");
    open(&path).close().await;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn the_files_are_for_their_owner_only_wherever_they_are() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let store = open(directory.path());
    store.check().await.unwrap();
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.contains(".db") {
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        }
    }
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused_and_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    open(directory.path()).close().await;
    Connection::open(database(directory.path())).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = contents(directory.path());
    let error = refusal(directory.path());
    assert!(matches!(error, OpenError::TooNew { found: 99, newest: 3, .. }), "{error:?}");
    assert!(contents(directory.path()) == before);
}

#[tokio::test]
async fn a_newer_version_that_is_only_in_the_log_is_refused_too() {
    let (directory, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    open(directory.path()).close().await;
    let newer = Connection::open(database(directory.path())).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    copy(directory.path(), crashed.path());
    let files = |directory: &Path| {
        let mut files = contents(directory);
        // The log's index is made anew by whoever opens the database, even for reading.
        files.remove(Path::new("redrive.db-shm").as_os_str());
        files
    };
    let before = files(crashed.path());
    assert!(before.contains_key(Path::new("redrive.db-wal").as_os_str()));
    let error = refusal(crashed.path());
    assert!(matches!(error, OpenError::TooNew { found: 99, .. }), "{error:?}");
    assert!(files(crashed.path()) == before);
}

fn execute(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_not_touched() {
    type Make = fn(&Path);
    let cases: [(&str, Make); 4] = [
        ("another program's database", |path| execute(path, "CREATE TABLE t (x); PRAGMA application_id = 7;")),
        ("an unmarked database", |path| execute(path, "CREATE TABLE t (x);")),
        ("text", |path| std::fs::write(path, "these are my notes".repeat(100)).unwrap()),
        ("an empty file", |path| std::fs::write(path, "").unwrap()),
    ];
    for (what, make) in cases {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("lock"), "").unwrap();
        make(&database(directory.path()));
        let before = contents(directory.path());
        let error = refusal(directory.path());
        assert!(matches!(error, OpenError::NotOurs { .. }), "{what}: {error:?}");
        assert!(contents(directory.path()) == before, "{what}");
    }
}

#[tokio::test]
async fn what_a_crash_left_of_making_a_database_is_no_obstacle() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("redrive.db.new"), "half a databa").unwrap();
    std::fs::write(directory.path().join("redrive.db.new-journal"), "half a journ").unwrap();
    let store = open(directory.path());
    store.check().await.unwrap();
    assert!(!directory.path().join("redrive.db.new").exists());
}

/// A database of version 1 with these tasks, as the program of that time wrote them: a copy of what this one writes.
async fn version_1(directory: &Path, fill: impl AsyncFn(&SqliteStore)) {
    let newer = tempfile::tempdir().unwrap();
    let store = open(newer.path());
    fill(&store).await;
    store.close().await;
    std::fs::create_dir_all(directory).unwrap();
    let connection = Connection::open(database(directory)).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.execute_batch(include_str!("../src/schema/v1.sql")).unwrap();
    connection.pragma_update(None, "application_id", 0x5244_7276).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
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

#[tokio::test]
async fn a_database_of_version_1_is_brought_up_to_date_with_all_that_is_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let before = std::cell::OnceCell::new();
    version_1(directory.path(), async |store| {
        allow(store, acme()).await;
        keep_and_end(store, task(1), Status::Succeeded, at(9)).await;
        keep_and_end(store, task(2).created(at(3)), Status::Exhausted, at(9)).await;
        keep(store, [task(3).due(at(50)), task(4).due(at(60)).created(at(5))]).await;
        let held = claim(store, billing(), 1, at(50)).await.remove(0);
        settle(store, retry(&held, at(51), at(70))).await;
        before.set(snapshot(store, [acme()]).await).unwrap();
    })
    .await;

    let store = open(directory.path());
    let mut expected = before.into_inner().unwrap();
    expected.unannounced.clear();
    snapshot(&store, [acme()]).await.assert_is(&expected, "after the migration");
    let dead = now_of(&store, &task(2).0.task).await;
    assert_eq!((dead.run, dead.attempts_before, dead.run_started_at), (1, 0, at(3)));

    // What is new works on what is old.
    let Replay::Done(replayed) = store.replay(acme(), id(2), at(1_000)).await.unwrap() else { panic!("not replayed") };
    assert_eq!(replayed.deadline_at.since(replayed.run_started_at), dead.deadline_at.since(at(3)));
    store.close().await;
    let store = open(directory.path());
    assert_eq!(now_of(&store, &dead).await, *replayed);
    let claimed = claim(&store, billing(), 10, at(2_000)).await;
    assert_eq!(claimed.iter().map(|claimed| claimed.task.id).collect::<Vec<_>>(), [id(4), id(3), id(2)]);
    for claimed in &claimed {
        assert_eq!(settle(&store, succeed(claimed, at(2_001))).await, Settled::Done(Status::Succeeded));
    }
}

#[tokio::test]
async fn people_can_read_the_database_while_the_store_runs() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    keep(&store, [task(1).due(at(5_000)).key("k-1")]).await;
    keep_and_end(&store, task(2), Status::Failed, at(9)).await;

    let sql = "SELECT task, tenant, dependency, status, policy, idempotency_key FROM task_overview ORDER BY task";
    let expected = [
        format!("{}|acme|https://billing.example|PENDING|default v1|k-1", id(1)),
        format!("{}|acme|https://billing.example|FAILED|default v1|key-2", id(2)),
    ];
    let connection = onlooker(directory.path());
    let mut select = connection.prepare(sql).unwrap();
    let rows: Vec<String> = select
        .query_map([], |row| Ok((0..6).map(|n| row.get::<_, String>(n).unwrap()).collect::<Vec<_>>().join("|")))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(rows, expected);

    // The shell that people have may be absent from a machine that only builds.
    if let Ok(shell) = Command::new("sqlite3").arg("-readonly").arg(database(directory.path())).arg(sql).output() {
        assert_eq!(String::from_utf8_lossy(&shell.stdout).lines().collect::<Vec<_>>(), expected, "{shell:?}");
    }
    store.check().await.unwrap();
}
