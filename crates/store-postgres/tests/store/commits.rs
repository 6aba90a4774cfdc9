//! The counts of commits: one for each transaction of the writers that was committed, with the calls that it held.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use redrive_store::conformance::samples::*;
use redrive_store::{CommitCounts, CommitHistogram, Store};
use redrive_store_postgres::{Options, PostgresStore};
use tokio_postgres::Client;

use crate::support::{NEVER, Opened, open_with, plain};

/// A store with one writer of each kind, and the policies that its tasks use.
async fn one_writer(batch_lock_timeout: Duration) -> Opened {
    let opened = open_with("one", |options| Options { writers: 1, batch_lock_timeout, ..options }).await;
    allow(&*opened.store, acme()).await;
    opened
}

fn counts(store: &PostgresStore) -> CommitCounts {
    store.health().commits().unwrap()
}

fn number(histogram: &CommitHistogram) -> u64 {
    histogram.buckets.iter().map(|(_, count)| count).sum()
}

/// The buckets that count something.
fn full(histogram: &CommitHistogram) -> Vec<(f64, u64)> {
    histogram.buckets.iter().copied().filter(|(_, count)| *count > 0).collect()
}

/// Has locked the table of live tasks, so that a submission waits.
async fn lock(opened: &Opened) -> Client {
    let client = plain(opened.database.url()).await;
    client.batch_execute("BEGIN; LOCK TABLE redrive.live").await.unwrap();
    client
}

async fn until_a_statement_waits(opened: &Opened) {
    let client = plain(opened.database.url()).await;
    let waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while client.query(waiting, &[]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn each_call_by_itself_is_one_commit() {
    let opened = one_writer(NEVER).await;
    assert_eq!((number(&counts(&opened.store).seconds), counts(&opened.store).calls.sum), (0, 0.0));
    for n in 1..=3 {
        let claimed = keep_and_claim(&*opened.store, task(n)).await;
        settle(&*opened.store, succeed(&claimed, at(5))).await;
    }
    let counts = counts(&opened.store);
    // Three submissions and three settlements.
    assert_eq!((full(&counts.calls), counts.calls.sum), (vec![(1.0, 6)], 6.0));
    assert_eq!(number(&counts.seconds), 6);
    assert!(counts.seconds.sum > 0.0);
}

#[tokio::test]
async fn calls_that_queued_during_a_commit_are_in_the_next_one() {
    let opened = one_writer(NEVER).await;
    let locked = lock(&opened).await;
    let submit = |n| {
        let store = Arc::clone(&opened.store);
        tokio::spawn(async move { submit(&*store, [task(n)]).await })
    };
    let first = submit(1);
    until_a_statement_waits(&opened).await;
    let waiting_since = Instant::now();
    let others: Vec<_> = (2..=21).map(submit).collect();
    // Spawned tasks run in their order, so this one runs after all of them have queued their calls.
    tokio::spawn(async {}).await.unwrap();
    assert_eq!(number(&counts(&opened.store).seconds), 0);
    let waited = waiting_since.elapsed();
    locked.batch_execute("COMMIT").await.unwrap();
    first.await.unwrap();
    join_all(others).await.into_iter().for_each(|outcome| assert_eq!(outcome.unwrap().len(), 1));
    let counts = counts(&opened.store);
    assert_eq!((full(&counts.calls), counts.calls.sum), (vec![(1.0, 1), (32.0, 1)], 21.0));
    assert_eq!(number(&counts.seconds), 2);
    assert!(counts.seconds.sum >= waited.as_secs_f64(), "{} after {waited:?}", counts.seconds.sum);
}

#[tokio::test]
async fn a_transaction_that_was_rolled_back_is_not_counted() {
    let opened = one_writer(Duration::from_millis(1)).await;
    let locked = lock(&opened).await;
    let store = Arc::clone(&opened.store);
    let submitted = tokio::spawn(async move { submit(&*store, [task(1)]).await });
    let client = plain(opened.database.url()).await;
    let rolled_back = "SELECT FROM pg_stat_database WHERE datname = current_database() AND xact_rollback > 0";
    while client.query(rolled_back, &[]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    locked.batch_execute("COMMIT").await.unwrap();
    assert_eq!(submitted.await.unwrap().len(), 1);
    let counts = counts(&opened.store);
    assert_eq!((full(&counts.calls), number(&counts.seconds)), (vec![(1.0, 1)], 1));
}
