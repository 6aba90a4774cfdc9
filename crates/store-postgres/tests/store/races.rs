//! Races of two transactions: the one that commits second reads what the first one wrote.

use std::time::Duration;

use redrive_core::{PolicyId, Status, policy};
use redrive_store::conformance::samples::*;
use redrive_store::{CancelOutcome, CleanFrom, DeletePolicy, Expected, Store};
use redrive_store_postgres::Options;
use tokio_postgres::Client;

use crate::support::{Opened, open_with, plain};

/// A store that waits for locks as long as the test takes.
async fn patient() -> Opened {
    open_with("one", |options| Options { lock_timeout: Duration::from_secs(25), ..options }).await
}

/// Waits until a session waits for a lock in this database.
async fn until_a_session_waits(opened: &Opened) {
    let client: Client = plain(opened.database.url()).await;
    let waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while client.query(waiting, &[]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_is_changed_while_it_is_deleted_is_not_what_was_expected() {
    let opened = patient().await;
    let id = PolicyId::default_policy();
    opened.store.policies().put(acme(), id.clone(), policy::Spec::default(), Expected::Absent, at(0)).await.unwrap();
    let mut client = plain(opened.database.url()).await;
    let changing = client.transaction().await.unwrap();
    changing
        .batch_execute(
            "UPDATE redrive.policies SET newest = 2 WHERE tenant = 'acme';
             INSERT INTO redrive.policy_versions (tenant, policy, version, created_at, spec)
             VALUES ('acme', 'default', 2, 0, '{\"maxAttempts\":2}')",
        )
        .await
        .unwrap();
    let store = opened.store.clone();
    let deleting =
        tokio::spawn(
            async move { store.policies().delete(acme(), PolicyId::default_policy(), Expected::Version(1)).await },
        );
    until_a_session_waits(&opened).await;
    changing.commit().await.unwrap();
    assert_eq!(deleting.await.unwrap().unwrap(), DeletePolicy::Conflict(2));
    assert_eq!(opened.store.policies().versions(acme(), id).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_that_ended_again_while_it_was_to_be_cleaned_away_stays() {
    let opened = patient().await;
    let dead = keep_and_end(&*opened.store, task(1), Status::Failed, at(10)).await.task;
    let mut client = plain(opened.database.url()).await;
    let replaying = client.transaction().await.unwrap();
    replaying.execute("SELECT FROM redrive.dead_letters FOR UPDATE", &[]).await.unwrap();
    let store = opened.store.clone();
    let cleaning = tokio::spawn(async move { store.upkeep().clean(at(50), CleanFrom::Start, 10).await });
    until_a_session_waits(&opened).await;
    // The rows after a replay and a second end.
    replaying
        .batch_execute(
            "UPDATE redrive.dead_letters SET run = 2, ended_at = ended_at + 1000;
             INSERT INTO redrive.log (tenant, id, token, number, status, reason, ended_at, attempt_number,
                 attempts_before, run, run_started_at, deadline_at, cancel_requested)
             SELECT tenant, id, token + 1, number + 1, status, reason, ended_at + 1000, attempt_number + 1,
                 attempt_number, 2, run_started_at, deadline_at, false
             FROM redrive.log",
        )
        .await
        .unwrap();
    replaying.commit().await.unwrap();
    assert_eq!(cleaning.await.unwrap().unwrap().removed, 0);
    assert_eq!(now_of(&*opened.store, &dead).await.run, 2);
    assert_eq!(opened.store.upkeep().pending_alerts(at(9_000_000), 10).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_being_replayed_is_cancelled_all_the_same() {
    let opened = patient().await;
    let dead = keep_and_end(&*opened.store, task(1), Status::Failed, at(10)).await.task;
    // A lock on the whole table blocks the call between looking for a live task and looking for an ended one.
    let mut client = plain(opened.database.url()).await;
    let holding = client.transaction().await.unwrap();
    holding.batch_execute("LOCK TABLE redrive.log IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let (store, id) = (opened.store.clone(), dead.id);
    let cancelling = tokio::spawn(async move { store.tasks().cancel_one(acme(), id, at(30)).await });
    until_a_session_waits(&opened).await;
    // The rows after a replay, except the log.
    plain(opened.database.url())
        .await
        .batch_execute(
            "INSERT INTO redrive.live (tenant, id, due_at, token, attempt_number, attempts_before, run, run_started_at,
                 deadline_at, attempt_timeout_ms, policy_version, cancel_requested, dependency, policy)
             SELECT tenant, id, created_at, 1, 1, 1, 2, created_at, created_at + 10000, attempt_timeout_ms,
                 policy_version, false, dependency, policy
             FROM redrive.tasks;
             DELETE FROM redrive.dead_letters",
        )
        .await
        .unwrap();
    holding.rollback().await.unwrap();
    let cancelled = cancelling.await.unwrap().unwrap();
    let CancelOutcome::Done(task) = cancelled else { panic!("{cancelled:?}") };
    assert_eq!((task.status, task.run), (Status::Cancelled, 2));
}
