//! How many pages of tables and indexes calls read while a transaction elsewhere stays open. Dead rows of the queue
//! cannot be removed then, and scans must pass their index entries. Counted by PostgreSQL.

use std::time::Duration;

use futures_util::future::BoxFuture;
use redrive_core::{Class, Timestamp};
use redrive_store::Store;
use redrive_store::conformance::samples::*;
use redrive_store_postgres::{Options, PostgresStore};
use redrive_testbed::{Database, Postgres};
use tokio_postgres::Client;

use crate::support::{NEVER, node, plain, until_gone};

/// How many tasks one claim takes.
const CLAIMED: usize = 16;
/// How often each call is made to measure what one call reads.
const CALLS: u64 = 20;
/// Disables floors: every claim starts at the beginning.
const NO_FLOORS: Duration = Duration::ZERO;

/// A database with a schema and a policy and without autovacuum, and a separate connection to it.
async fn database() -> (Database, Client) {
    let database = Postgres::shared().fresh_database();
    let store = open(&database, "first", NEVER).await;
    allow(&store, acme()).await;
    store.close().await;
    let client = plain(database.url()).await;
    client.batch_execute("ALTER TABLE redrive.live SET (autovacuum_enabled = off)").await.unwrap();
    (database, client)
}

async fn open(database: &Database, name: &str, floors_last: Duration) -> PostgresStore {
    let options = Options {
        floors_last: floors_last..=floors_last,
        upkeep_after: NEVER,
        ..Options::new(database.url(), node(name))
    };
    PostgresStore::open(options).await.unwrap()
}

/// An idle transaction that keeps its snapshot for as long as the connection is open.
async fn long_transaction(database: &Database) -> Client {
    let client = plain(database.url()).await;
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM redrive.live").await.unwrap();
    client
}

/// A time at which everything is due.
const LATE: u64 = 1_000_000;

/// Empties the queue and leaves dead rows in it, of tasks that were submitted, claimed and settled. Their due times are
/// one millisecond apart, and their rows are in another order, like those of tasks that wait for different times.
///
/// Runs in a separate session: its reads are counted when it ends, and not among what is measured.
async fn live_and_die(database: &Database, client: &Client, tasks: i64) {
    let filling = plain(database.url()).await;
    filling.batch_execute("SET application_name = 'redrive filling'; DELETE FROM redrive.live").await.unwrap();
    let sql = "
        INSERT INTO redrive.live (
            tenant, id, due_at, token, attempt_number, attempts_before, run, run_started_at, deadline_at,
            attempt_timeout_ms, policy_version, cancel_requested, dependency, policy, max_attempts
        )
        SELECT $1, gen_random_uuid(), $2 + n, 0, 0, 0, 1, $2, $2 + 86400000 + n, 10000, 1, false, $3, 'default', 5
        FROM generate_series(1, $4::bigint) AS n
        ORDER BY md5(n::text)";
    filling.execute(sql, &[&TENANT, &at(0).as_millis().cast_signed(), &DEPENDENCY, &tasks]).await.unwrap();
    let claim = "UPDATE redrive.live SET lease_since = due_at, lease_until = due_at + 15000, node = 'dead', token = 1";
    filling.batch_execute(claim).await.unwrap();
    filling.batch_execute("DELETE FROM redrive.live").await.unwrap();
    drop(filling);
    until_gone(client, "redrive filling").await;
}

/// Submits pending tasks that are due after those, enough for all calls.
async fn keep_some(database: &Database, client: &Client, first: u64) {
    let filler = open(database, "filler", NEVER).await;
    let tasks = (CALLS + 2) * CLAIMED as u64;
    keep(&filler, (first..first + tasks).map(|n| task(n).due(at(LATE / 2 + n)).deadline(at(100_000_000 + n)))).await;
    filler.close().await;
    until_gone(client, "redrive filler").await;
}

/// The pages that ended sessions have read so far.
async fn pages(client: &Client) -> i64 {
    let sql = "
        SELECT sum(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit)::bigint
        FROM pg_statio_user_tables WHERE schemaname = 'redrive' AND relname IN ('live', 'tasks')";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// A call that is repeated.
type Call = for<'a> fn(&'a PostgresStore, Timestamp) -> BoxFuture<'a, ()>;

fn claim_some(store: &PostgresStore, now: Timestamp) -> BoxFuture<'_, ()> {
    Box::pin(async move { assert_eq!(claim(store, billing(), CLAIMED, now).await.len(), CLAIMED) })
}

fn look_for_expired(store: &PostgresStore, now: Timestamp) -> BoxFuture<'_, ()> {
    Box::pin(async move { assert_eq!(store.upkeep().expired_leases(now, 100).await.unwrap(), []) })
}

fn look_for_overdue(store: &PostgresStore, now: Timestamp) -> BoxFuture<'_, ()> {
    Box::pin(async move { assert_eq!(store.upkeep().end_overdue(now, 100).await.unwrap().ended, []) })
}

fn look_around(store: &PostgresStore, _now: Timestamp) -> BoxFuture<'_, ()> {
    Box::pin(async move { assert_eq!(store.upkeep().pending_lanes(None, 100).await.unwrap().len(), 1) })
}

/// The pages that one of these calls reads, except the first call of a store.
async fn read_by_one(database: &Database, client: &Client, floors_last: Duration, call: Call) -> i64 {
    let mut read = Vec::new();
    for calls in [1, 1 + CALLS] {
        let before = pages(client).await;
        let reader = open(database, "reader", floors_last).await;
        for n in 0..calls {
            call(&reader, at(LATE + n)).await;
        }
        reader.close().await;
        until_gone(client, "redrive reader").await;
        read.push(pages(client).await - before);
    }
    (read[1] - read[0]) / CALLS.cast_signed()
}

/// The pages that one claim reads: without dead rows, and with this many of them, without and with floors.
async fn read_by_claims(dead: i64) -> [i64; 3] {
    let (database, client) = database().await;
    keep_some(&database, &client, 1).await;
    let without = read_by_one(&database, &client, NEVER, claim_some).await;
    let _long = long_transaction(&database).await;
    live_and_die(&database, &client, dead).await;
    keep_some(&database, &client, 1_001).await;
    let from_the_beginning = read_by_one(&database, &client, NO_FLOORS, claim_some).await;
    keep_some(&database, &client, 2_001).await;
    let from_floors = read_by_one(&database, &client, NEVER, claim_some).await;
    [without, from_the_beginning, from_floors]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_walks_past_no_more_dead_rows_than_those_of_the_claim_before() {
    let [without, from_the_beginning, from_floors] = read_by_claims(5_000).await;
    let read = format!("{without} pages without dead rows, {from_the_beginning} and {from_floors} with 5,000");
    assert!(from_the_beginning > 5 * without, "the measure is of use: {read}");
    assert!(from_floors < 2 * without, "{read}");
}

/// The pages that periodic scans read, in the same three cases as [`read_by_claims`].
async fn read_by_looks(dead: i64) -> Vec<(&'static str, [i64; 3])> {
    const LOOKS: [(&str, Call); 3] =
        [("expired", look_for_expired), ("end overdue", look_for_overdue), ("pending lanes", look_around)];
    let (database, client) = database().await;
    keep_some(&database, &client, 1).await;
    let mut read = Vec::new();
    for (name, call) in LOOKS {
        read.push((name, [read_by_one(&database, &client, NEVER, call).await, 0, 0]));
    }
    let _long = long_transaction(&database).await;
    live_and_die(&database, &client, dead).await;
    keep_some(&database, &client, 1_001).await;
    for ((_, call), (_, [_, from_the_beginning, from_floors])) in LOOKS.into_iter().zip(&mut read) {
        *from_the_beginning = read_by_one(&database, &client, NO_FLOORS, call).await;
        *from_floors = read_by_one(&database, &client, NEVER, call).await;
    }
    read
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_for_leases_that_ran_out_and_for_overdue_tasks_walk_past_no_dead_rows() {
    for (name, read) in read_by_looks(5_000).await {
        let [without, from_the_beginning, from_floors] = read;
        assert!(from_the_beginning > 100 * without, "the measure is of use: {name}, {read:?}");
        // The scan of all lanes finds what floors hide, so it starts at the beginning.
        assert_eq!(from_floors < 10 * without, name != "pending lanes", "{name}: {read:?}");
    }
}

/// Measures the numbers for `docs/benchmarks.md`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement, which takes a minute"]
async fn what_calls_read_with_50_000_dead_rows() {
    println!("pages without dead rows, with them from the beginning, with them from floors");
    println!("claim of {CLAIMED}: {:?}", read_by_claims(50_000).await);
    for (name, read) in read_by_looks(50_000).await {
        println!("{name}: {read:?}");
    }
}

/// How many entries of the index of due tasks a call passes for each task.
async fn entries_for_each(rounds: u64) -> i64 {
    let (database, client) = database().await;
    let _long = long_transaction(&database).await;
    let store = open(&database, "reader", NEVER).await;
    for round in 0..rounds {
        let now = at(round * 1_000);
        let first = round * CLAIMED as u64 + 1;
        keep(&store, (first..first + CLAIMED as u64).map(|n| task(n).due(now))).await;
        let mut claimed = claim(&store, billing(), CLAIMED, now).await;
        claimed.extend(claim_class(&store, billing(), Class::Retry, CLAIMED, now).await);
        assert_eq!(claimed.len(), if round == 0 { CLAIMED } else { CLAIMED + CLAIMED / 2 });
        // Half of the first attempts are retried a second later.
        let ends = claimed.iter().enumerate().map(|(at_place, claimed)| match at_place < CLAIMED / 2 {
            true => retry(claimed, now, at((round + 1) * 1_000)),
            false => succeed(claimed, now),
        });
        store.tasks().settle(ends.collect()).await.unwrap();
    }
    store.close().await;
    until_gone(&client, "redrive reader").await;
    let sql = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'live_due'";
    let read: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
    read / (rounds * CLAIMED as u64).cast_signed()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_for_a_task_does_not_grow_with_those_before_it() {
    let for_each = entries_for_each(60).await;
    assert!(for_each <= 12, "{for_each} entries of the index of due work for each task");
}
