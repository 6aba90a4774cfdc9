//! Measures how fast the index is rebuilt, which takes a while: `cargo test --release -p redrive-schedule-redis --test
//! rebuild_rate -- --ignored --nocapture`

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::time::{Duration, Instant};

use redrive_core::Timestamp;
use redrive_store::conformance::samples::{acme, allow, claim, lane};
use redrive_testbed::{Postgres, Redis};
use support::eventually;
use support::scheduled::{in_use, postgres, scheduled};

const TASKS: u64 = 1_000_000;
const LANES: u64 = 1_000;
/// The goal for a million tasks.
const GOAL: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it measures, and takes a minute"]
async fn a_million_tasks_are_back_in_the_index_within_half_a_minute() {
    let redis = Redis::start();
    let database = Postgres::shared().fresh_database();
    let store = scheduled(postgres(database.url(), "one").await, &redis.url(), "redrive");
    allow(&store, acme()).await;
    in_use(&store).await;
    make_tasks(database.url()).await;

    let memory = || -> u64 {
        let said = redis.call(&["INFO", "memory"]);
        let line = said.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
        line.trim().parse().unwrap()
    };
    let before = memory();
    redis.call(&["FLUSHALL"]);
    let begin = Instant::now();
    let first = lane("acme", "https://dependency-0.example");
    let claimed = claim(&store, first, 1, Timestamp::from_millis(1_000)).await;
    assert_eq!(claimed.len(), 1, "the store answers meanwhile");
    eventually("the index is in use", || async { store.in_use().complete == 256 }).await;
    let took = begin.elapsed();
    let bytes = (memory() - before) / TASKS;
    let rate = TASKS as f64 / took.as_secs_f64();
    println!("{TASKS} tasks of {LANES} lanes in {took:.1?}: {rate:.0} a second, {bytes} bytes of Redis for each");
    assert!(took < GOAL, "{took:?}");
}

/// Inserts tasks into the table of pending tasks, which is all that a rebuild reads.
async fn make_tasks(url: &str) {
    let (client, driver) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let driver = tokio::spawn(driver);
    let insert = format!(
        "INSERT INTO redrive.tasks (
             tenant, id, created_at, max_attempts, attempt_timeout_ms, policy_version, policy, dependency,
             idempotency_key, fingerprint, target_url, method, body
         )
         SELECT 'acme', redrive.make_task_id(n), n, 5, 1000, 1, 'default', 'https://dependency-' || n % {LANES} || '.example',
             n::text, '\\x00', 'https://dependency.example', 'POST', ''
         FROM generate_series(0, {TASKS} - 1) AS n;
         INSERT INTO redrive.live (
             tenant, id, due_at, token, attempt_number, attempts_before, run, run_started_at, deadline_at,
             attempt_timeout_ms, policy_version, cancel_requested, dependency, policy
         )
         SELECT tenant, id, created_at, 0, 0, 0, 1, 0, 1000000000, 1000, 1, false, dependency, 'default'
         FROM redrive.tasks;
         ANALYZE redrive.live"
    );
    client.batch_execute(&insert).await.unwrap();
    drop(client);
    driver.await.unwrap().unwrap();
}
