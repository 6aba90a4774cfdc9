//! Rollback: a transaction that fails leaves nothing behind, neither on disk nor in the memory that mirrors it.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use redrive_core::Status;
use redrive_store::conformance::samples::{
    acme, allow, at, claim, counts, everything, id, keep, keep_and_claim, keep_and_end, lane, list, policy_id, succeed,
    task, tenant,
};
use redrive_store::{
    ClaimedTask, CleanFrom, DeletePolicy, Error, Expected, Lease, NewTask, Settled, Store, Submitted, Token,
};
use redrive_store_sqlite::{Options, SqliteStore};
use rusqlite::Connection;

use support::{database, open};

/// A task with the id of another one: no id generator makes it, and the database refuses it.
fn impossible() -> NewTask {
    task(1).key("another-key").0
}

#[tokio::test]
async fn a_failed_call_leaves_no_task_no_key_no_lane_and_no_count() {
    for recent_keys in [1, 1_000] {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(Options { recent_keys, ..Options::new(directory.path()) }).unwrap();
        allow(&store, acme()).await;
        keep(&store, [task(1)]).await;
        let new_lane = || task(2).to("https://new.example");
        for _ in 0..3 {
            let failed = store.tasks().submit(vec![new_lane().0, task(3).claimed(at(0)).0, impossible()]).await;
            assert!(matches!(failed, Err(Error::Unavailable(_))), "{failed:?}");
        }
        assert_eq!(counts(&store, acme()).await, [1, 0, 0, 0, 0, 0]);
        assert_eq!(list(&store, everything(acme())).await.len(), 1);
        assert_eq!(store.upkeep().pending_lanes(None, 10).await.unwrap().len(), 1);
        assert!(store.upkeep().expired_leases(at(1_000_000), 10).await.unwrap().is_empty());

        // Another lane gets the number that the failed one had: no cache may still have the old name for it.
        keep(&store, [task(4).to("https://other.example")]).await;
        assert_eq!(claim(&store, lane("acme", "https://new.example"), 1, at(0)).await, []);
        assert_eq!(claim(&store, lane("acme", "https://other.example"), 1, at(0)).await[0].task.id, id(4));
        let created = store.tasks().submit(vec![new_lane().0]).await.unwrap();
        assert!(matches!(created[..], [Submitted::Created(_, None)]), "{created:?}");
        assert_eq!(claim(&store, lane("acme", "https://new.example"), 1, at(0)).await[0].task.id, id(2));
        assert_eq!(counts(&store, acme()).await, [1, 2, 0, 0, 0, 0]);
    }
}

#[tokio::test]
async fn calls_that_share_a_transaction_with_a_failure_are_made_again_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    keep(&store, [task(1)]).await;
    let held = keep_and_claim(&store, task(2).to("https://b.example")).await;
    let (third, settled, failed, fourth) = tokio::join!(
        store.tasks().submit(vec![task(3).0]),
        store.tasks().settle(vec![succeed(&held, at(1))]),
        store.tasks().submit(vec![impossible()]),
        store.tasks().submit(vec![task(4).0]),
    );
    assert!(failed.is_err());
    for created in [third.unwrap(), fourth.unwrap()] {
        assert!(matches!(created[..], [Submitted::Created(_, None)]), "{created:?}");
    }
    assert_eq!(settled.unwrap(), [Settled::Done(Status::Succeeded)]);
    assert_eq!(counts(&store, acme()).await, [3, 0, 1, 0, 0, 0]);
}

#[tokio::test]
async fn a_cleaning_that_shares_a_transaction_with_a_failure_is_done_and_frees_the_keys() {
    for recent_keys in [1, 1_000_000] {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(Options { recent_keys, ..Options::new(directory.path()) }).unwrap();
        allow(&store, acme()).await;
        keep(&store, [task(1)]).await;
        for round in 1..=20 {
            keep_and_end(&store, task(2).to("https://b.example"), Status::Succeeded, at(1)).await;
            // A slow call, so that the two behind it share the next transaction.
            let many = (0..500).map(|n| task(round * 1_000 + n).0).collect();
            let (_, cleaned, failed) = tokio::join!(
                store.tasks().submit(many),
                store.upkeep().clean(at(9), CleanFrom::Start, 10),
                store.tasks().submit(vec![impossible()])
            );
            assert!(failed.is_err());
            assert_eq!(cleaned.unwrap().removed, 1, "round {round}");
        }
    }
}

#[tokio::test]
async fn a_cleaning_that_fails_leaves_the_tasks_their_keys() {
    for recent_keys in [1, 1_000_000] {
        let directory = tempfile::tempdir().unwrap();
        let open = || SqliteStore::open(Options { recent_keys, ..Options::new(directory.path()) }).unwrap();
        let store = open();
        allow(&store, acme()).await;
        for n in 1..=3 {
            keep_and_end(&store, task(n), Status::Succeeded, at(1)).await;
        }
        store.close().await;
        // The last of the three cannot be deleted. By then the other two and their keys have been deleted.
        let refuse = "CREATE TRIGGER refuse BEFORE DELETE ON tasks WHEN (SELECT count(*) FROM tasks) = 1
                      BEGIN SELECT RAISE(ABORT, 'refused'); END";
        Connection::open(database(directory.path())).unwrap().execute_batch(refuse).unwrap();

        let store = open();
        store.upkeep().clean(at(9), CleanFrom::Start, 10).await.unwrap_err();
        for n in 1..=3 {
            let again = store.tasks().submit(vec![task(n).0]).await.unwrap();
            assert!(matches!(&again[..], [Submitted::Replayed(task)] if task.id == id(n)), "{again:?}");
        }
    }
}

#[tokio::test]
async fn a_claim_that_was_rolled_back_settles_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    keep(&store, [task(1)]).await;
    assert!(store.tasks().submit(vec![task(2).claimed(at(0)).0, impossible()]).await.is_err());
    // The same task again, now pending; the claim of the failed call would have had the first token.
    keep(&store, [task(2)]).await;
    let NewTask { task, request, .. } = task(2).0;
    let lease = Lease { token: Token(1), since: at(0), until: at(1) };
    let settled = store.tasks().settle(vec![succeed(&ClaimedTask { task, request, lease }, at(1))]).await.unwrap();
    assert_eq!(settled, [Settled::LeaseLost]);
    assert_eq!(counts(&store, acme()).await, [2, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn a_policy_is_pinned_by_what_was_kept_and_not_by_what_was_rolled_back() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    allow(&store, tenant("globex")).await;
    keep(&store, [task(1)]).await;
    let failed = store.tasks().submit(vec![task(2).of("globex").0, impossible()]).await;
    assert!(failed.is_err());
    let policy = policy_id("default");
    let deleted = store.policies().delete(tenant("globex"), policy.clone(), Expected::Anything).await.unwrap();
    assert_eq!(deleted, DeletePolicy::Done);
    let pinned = store.policies().delete(acme(), policy, Expected::Anything).await.unwrap();
    assert_eq!(pinned, DeletePolicy::Pinned(1));
    let refused = store.tasks().submit(vec![task(3).of("globex").0]).await.unwrap();
    assert_eq!(refused, [Submitted::PolicyGone]);
}

#[tokio::test]
async fn an_ended_task_keeps_the_name_of_a_policy_that_was_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    let held = keep_and_claim(&store, task(1)).await;
    store.tasks().settle(vec![succeed(&held, at(1))]).await.unwrap();
    store.policies().delete(acme(), policy_id("default"), Expected::Anything).await.unwrap();
    // A pass that removes nothing must not remove the version that the task refers to.
    store.upkeep().clean(at(0), CleanFrom::Start, 100).await.unwrap();
    let found = store.reads().task(acme(), id(1)).await.unwrap().unwrap().task;
    assert_eq!((found.policy, found.status), (held.task.policy, Status::Succeeded));
}
