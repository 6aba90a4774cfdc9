//! A full disk, and a disk that fails to sync: the real system calls fail, in a separate process.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use redrive_store::conformance::samples::{acme, allow, at, billing, claim, counts, keep, lane, task};
use redrive_store::{Error, Store, Submitted};
use redrive_store_sqlite::{Options, SqliteStore};

use support::{child, child_directory, open};

const SIGABRT: i32 = 6;

/// Compiles the library that simulates the disk. SQLite is compiled from C as well, so there is a compiler.
fn stand_in(directory: &Path) -> PathBuf {
    let library = directory.join("failing_disk.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/failing_disk.c");
    let status = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).status().unwrap();
    assert!(status.success());
    library
}

/// Runs a test of this file in a process whose disk fails while the files `no-space` and `no-sync` exist.
fn on_a_failing_disk(role: &str) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let library = stand_in(directory.path());
    let (writes, syncs) = (directory.path().join("no-space"), directory.path().join("no-sync"));
    let environment: [(&str, &Path); 3] = [("LD_PRELOAD", &library), ("FAIL_WRITES", &writes), ("FAIL_SYNCS", &syncs)];
    child(role, directory.path(), &environment).wait_with_output().unwrap()
}

fn assert_passed(output: &Output) {
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{complained}");
}

struct Fault(PathBuf);

impl Fault {
    fn begin(name: &str) -> Fault {
        let flag = child_directory().join(name);
        std::fs::write(&flag, "").unwrap();
        Fault(flag)
    }

    fn end(self) {
        std::fs::remove_file(self.0).unwrap();
    }
}

#[test]
fn a_full_disk_fails_writes_and_heals() {
    assert_passed(&on_a_failing_disk("child_full_disk"));
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn child_full_disk() {
    let directory = child_directory().join("data");
    let store = SqliteStore::open(Options { recent_keys: 5, ..Options::new(&directory) }).unwrap();
    allow(&store, acme()).await;
    keep(&store, (1..=20).map(task)).await;
    for round in 0..3 {
        let fault = Fault::begin("no-space");
        let first = 100 + round * 10;
        let on_a_new_lane = || task(first).to(&format!("https://{round}.example")).claimed(at(0));
        for _ in 0..3 {
            let failed = store.tasks().submit(vec![on_a_new_lane().0, task(first + 1).0]).await;
            assert!(matches!(failed, Err(Error::Full(_))), "{failed:?}");
            assert!(matches!(store.health().check().await, Err(Error::Full(_))));
        }
        // Reads continue, also on connections that have not read before.
        for n in 1..=20 {
            assert!(store.reads().task(acme(), redrive_store::conformance::samples::id(n)).await.unwrap().is_some());
        }
        assert_eq!(counts(&store, acme()).await, [20 + round, round, 0, 0, 0, 0]);
        fault.end();

        store.health().check().await.unwrap();
        let created = store.tasks().submit(vec![on_a_new_lane().0, task(first + 1).0]).await.unwrap();
        assert!(matches!(created[..], [Submitted::Created(_, Some(_)), Submitted::Created(_, None)]), "{created:?}");
        assert_eq!(counts(&store, acme()).await, [21 + round, 1 + round, 0, 0, 0, 0]);
        let again = store.tasks().submit(vec![on_a_new_lane().0]).await.unwrap();
        assert!(matches!(again[..], [Submitted::Replayed(_)]), "{again:?}");
        assert_eq!(claim(&store, lane("acme", &format!("https://{round}.example")), 5, at(0)).await, []);
    }
    store.close().await;
    let store = open(&directory);
    assert_eq!(counts(&store, acme()).await, [23, 3, 0, 0, 0, 0]);
    assert_eq!(claim(&store, billing(), 50, at(0)).await.len(), 23);
}

#[test]
fn a_commit_that_cannot_be_synced_ends_the_process() {
    let output = on_a_failing_disk("child_failing_commit");
    assert_eq!(output.status.signal(), Some(SIGABRT), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the disk failed to sync"), "{said}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("ACKNOWLEDGED"));
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn child_failing_commit() {
    // No checkpoint runs in between, so it is the commit that fails.
    let options =
        Options { checkpoint_after: Duration::from_secs(3_600), ..Options::new(child_directory().join("data")) };
    let store = SqliteStore::open(options).unwrap();
    allow(&store, acme()).await;
    let _fault = Fault::begin("no-sync");
    let outcome = store.tasks().submit(vec![task(1).0]).await;
    println!("ACKNOWLEDGED {outcome:?}");
}

#[test]
fn a_checkpoint_that_cannot_be_synced_ends_the_process() {
    let output = on_a_failing_disk("child_failing_checkpoint");
    assert_eq!(output.status.signal(), Some(SIGABRT), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("COMMITTED"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("moving the log into the database"), "{output:?}");
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn child_failing_checkpoint() {
    let options =
        Options { checkpoint_after: Duration::from_millis(300), ..Options::new(child_directory().join("data")) };
    let store = SqliteStore::open(options).unwrap();
    allow(&store, acme()).await;
    println!("COMMITTED");
    // The checkpoint of that commit has not run yet.
    let _fault = Fault::begin("no-sync");
    tokio::time::sleep(Duration::from_secs(20)).await;
}
