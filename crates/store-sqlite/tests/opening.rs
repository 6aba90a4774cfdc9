//! Opening: which directories and files are accepted.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use redrive_core::Status;
use redrive_store::Store;
use redrive_store::conformance::samples::{acme, allow, at, id, keep, keep_and_end, task};
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
    store.health().check().await.unwrap();
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
    store.health().check().await.unwrap();
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
    assert!(matches!(error, OpenError::TooNew { found: 99, newest: 7, .. }), "{error:?}");
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
        // The log's index is created again by every process that opens the database, even for reading.
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
    store.health().check().await.unwrap();
    assert!(!directory.path().join("redrive.db.new").exists());
}

#[tokio::test]
async fn the_view_for_people_shows_no_secrets() {
    let urls = [
        ("https://user:password@h.example/a/b?token=1", "https://***@h.example/a/b?***"),
        ("https://token@h.example/x", "https://***@h.example/x"),
        ("http://a@b:c@h.example:80/p@q#f", "http://***@h.example:80/p@q?***"),
        ("http://h.example?x=1", "http://h.example?***"),
        ("http://h.example/p/@x", "http://h.example/p/@x"),
        ("http://h.example", "http://h.example"),
    ];
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    let with_url = |(n, url): (u64, &str)| {
        let url = url.to_owned();
        task(n).request(move |request| request.target_url = url)
    };
    keep(&store, (1..).zip(urls.map(|(url, _)| url)).map(with_url)).await;
    let connection = onlooker(directory.path());
    let mut select = connection.prepare("SELECT target_url FROM task_overview ORDER BY task").unwrap();
    let shown: Vec<String> = select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(shown, urls.map(|(_, shown)| shown));
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

    // The `sqlite3` shell may be absent from a build machine.
    if let Ok(shell) = Command::new("sqlite3").arg("-readonly").arg(database(directory.path())).arg(sql).output() {
        assert_eq!(String::from_utf8_lossy(&shell.stdout).lines().collect::<Vec<_>>(), expected, "{shell:?}");
    }
    store.health().check().await.unwrap();
}
