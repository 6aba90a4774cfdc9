//! Reopening: everything that was acknowledged is present after a restart, however the process ended.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use redrive_core::{Status, Timestamp};
use redrive_store::conformance::samples::{
    acme, allow, at, billing, claim, detail, id, keep, keep_and_end, now_of, stored, succeed, task,
};
use redrive_store::conformance::{Snapshot, snapshot, workload};
use redrive_store::{Blob, RaisedAlert, Settled, Store, Submitted};
use redrive_store_sqlite::{Options, SqliteStore};

use support::{copy, open};

/// The expected state after a restart, which ends all leases: no process is left that could hold one.
fn after_restart(mut snapshot: Snapshot) -> Snapshot {
    for claimed in &mut snapshot.in_flight {
        claimed.lease.until = Timestamp::from_millis(0);
    }
    snapshot
}

#[tokio::test]
async fn everything_survives_closing() {
    for (seed, recent_keys) in [(11, 10_000), (12, 5)] {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { recent_keys, ..Options::new(directory.path()) };
        let store = SqliteStore::open(options.clone()).unwrap();
        let before = workload::run(&store, seed, 500).await;
        store.close().await;
        let store = SqliteStore::open(options).unwrap();
        let after = snapshot(&store, workload::tenants()).await;
        after.assert_is(&after_restart(before), &format!("seed {seed}"));
    }
}

#[tokio::test]
async fn everything_survives_a_crash() {
    let (directory, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(directory.path());
    let before = workload::run(&store, 13, 500).await;
    copy(directory.path(), crashed.path());
    let after = snapshot(&open(crashed.path()), workload::tenants()).await;
    after.assert_is(&after_restart(before), "after a crash");
}

#[tokio::test]
async fn closing_leaves_one_file_that_holds_everything() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    keep(&store, [task(1)]).await;
    store.close().await;
    let mut files: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["lock", "redrive.db"]);
}

#[tokio::test]
async fn a_store_that_is_only_dropped_lets_go_of_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    keep(&store, [task(1)]).await;
    drop(store);
    // Its threads end by themselves soon.
    let store = loop {
        match SqliteStore::open(Options::new(directory.path())) {
            Ok(store) => break store,
            Err(error) => assert!(error.to_string().contains("in use"), "{error}"),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(now_of(&store, &task(1).0.task).await.status, Status::Pending);
}

#[tokio::test]
async fn a_task_in_flight_has_an_expired_lease_after_a_restart_and_its_token_still_counts() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    keep(&store, [task(1).claimed(at(0)), task(2)]).await;
    let held = claim(&store, billing(), 1, at(0)).await.remove(0);
    assert!(store.upkeep().expired_leases(at(1), 10).await.unwrap().is_empty());
    store.close().await;

    let store = open(directory.path());
    let expired = store.upkeep().expired_leases(at(0), 10).await.unwrap();
    assert_eq!(expired.iter().map(|claimed| claimed.task.id).collect::<Vec<_>>(), [id(1), id(2)]);
    assert_eq!(expired[1].lease.token, held.lease.token);
    assert_eq!(
        store.tasks().settle(vec![succeed(&expired[0], at(2))]).await.unwrap(),
        [Settled::Done(Status::Succeeded)]
    );
}

#[tokio::test]
async fn an_unannounced_dead_letter_is_still_to_be_announced_after_a_crash() {
    let (directory, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(directory.path());
    allow(&store, acme()).await;
    for n in 1..=3 {
        keep_and_end(&store, task(n), Status::Failed, at(n)).await;
    }
    store.upkeep().confirm_alerts(vec![RaisedAlert { tenant: acme(), id: id(2), run: 1 }]).await.unwrap();
    store.tasks().replay_one(acme(), id(3), at(10)).await.unwrap();
    copy(directory.path(), crashed.path());
    store.close().await;
    for directory in [directory.path(), crashed.path()] {
        let left = open(directory).upkeep().pending_alerts(Timestamp::MAX, 10).await.unwrap();
        assert_eq!(left.iter().map(|task| task.id).collect::<Vec<_>>(), [id(1)]);
    }
}

#[tokio::test]
async fn a_key_is_found_after_any_number_of_restarts_wherever_it_is_by_then() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { recent_keys: 40, ..Options::new(directory.path()) };
    let mut kept = 0;
    for round in 0..6 {
        let store = SqliteStore::open(options.clone()).unwrap();
        if round == 0 {
            allow(&store, acme()).await;
        }
        // Newer ids first, so that some arrive while the keys of later tasks are being moved to disk or are there
        // already.
        for n in (kept + 1..=kept + 60).rev() {
            keep(&store, [task(n)]).await;
        }
        kept += 60;
        for n in 1..=kept {
            let again = store.tasks().submit(vec![task(n).0]).await.unwrap().remove(0);
            assert!(
                matches!(&again, Submitted::Replayed(task) if task.id == id(n)),
                "round {round}, key {n}: {again:?}"
            );
        }
        store.close().await;
    }
}

#[tokio::test]
async fn a_key_is_found_after_a_crash_at_any_step_of_moving_keys_to_disk() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { recent_keys: 100, ..Options::new(directory.path()) };
    let store = SqliteStore::open(options).unwrap();
    allow(&store, acme()).await;
    keep(&store, (1..=101).map(task)).await;
    for n in 102..=110 {
        // Each of these commits moves a slice of the first hundred.
        keep(&store, [task(n)]).await;
        let crashed = tempfile::tempdir().unwrap();
        copy(directory.path(), crashed.path());
        let after = open(crashed.path());
        let again = after.tasks().submit((1..=n).map(|n| task(n).0).collect()).await.unwrap();
        let found = again.iter().filter(|submitted| matches!(submitted, Submitted::Replayed(_))).count();
        assert_eq!(found as u64, n, "after commit {n}");
    }
}

#[tokio::test]
async fn blobs_and_who_refers_to_them_survive_a_crash() {
    let (directory, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(directory.path());
    let (used, unused) = (stored("used", 1), stored("unused", u64::MAX));
    for body in [used, unused] {
        store.blobs().adopt(acme(), body, at(0)).await.unwrap();
    }
    let sample = task(1).stored(used);
    keep(&store, [sample.clone()]).await;
    let condemned = store.blobs().condemn(Timestamp::MAX, None, 10).await.unwrap();
    assert_eq!(condemned.blobs, [Blob { tenant: acme(), body: unused }]);
    copy(directory.path(), crashed.path());

    let store = open(crashed.path());
    assert_eq!(detail(&store, &sample.0.task).await.request, sample.0.request);
    assert_eq!(store.blobs().find(acme(), used.hash).await.unwrap(), Some(used));
    assert_eq!(store.blobs().find(acme(), unused.hash).await.unwrap(), None);
    assert_eq!(store.blobs().condemn(Timestamp::MAX, None, 10).await.unwrap(), condemned);
}
