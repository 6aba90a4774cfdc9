//! Measurements of the shared store only: a database with a history, and the queries of an idle node.

use anyhow::{Context, Result};
use redrive_testbed::Database;
use tokio_postgres::{Client, NoTls};

use super::pipeline::{self, Load};
use super::preload::Ended;
use super::world::{Variant, World};
use crate::stats::Spread;

/// Inserts ended tasks, each with its key, its request, its attempt and its answer, as the store would have written
/// them.
const FILL: &str = "
WITH made AS (
    SELECT redrive.make_task_id(1700000000000 + n / 10) AS id, n FROM generate_series(1, $1::bigint) AS n
), tasks AS (
    INSERT INTO redrive.tasks (
        tenant, id, created_at, max_attempts, attempt_timeout_ms, policy_version, policy, dependency, idempotency_key,
        fingerprint, target_url, method, headers, body
    )
    SELECT 'default', id, 1700000000000 + n / 10, 6, 30000, 1, 'default', 'https://lane-' || n % 1000 || '.example',
           gen_random_uuid()::text, sha256(n::text::bytea), 'https://lane-' || n % 1000 || '.example/hooks', 'POST',
           '[[\"content-type\",\"text/plain\"]]', convert_to(repeat('x', $2::int), 'UTF8')
    FROM made
    RETURNING tenant, id, created_at
), log AS (
    INSERT INTO redrive.log (
        tenant, id, token, number, started_at, duration_us, outcome, response_status, status, ended_at, attempt_number,
        attempts_before, run, run_started_at, deadline_at, cancel_requested, answer_status, answer_truncated, answer_body
    )
    SELECT tenant, id, 1, 1, created_at, 1200, 'success', 200, 4, created_at + 2, 1, 0, 1, created_at,
           created_at + 86400000, false, 200, false, ''
    FROM tasks
)
INSERT INTO redrive.task_counts (tenant, policy, policy_version, status, tasks) VALUES ('default', 'default', 1, 4, $1)";

/// Tasks that one statement makes.
const STEP: i64 = 100_000;

/// Measures the pipeline over a database with `tasks` ended tasks, and over an empty one, in turns.
pub fn measure_ended(world: &World, load: &Load, rounds: usize, tasks: u64) -> Result<Ended> {
    let variant = Variant::Postgres(1);
    let (empty, full) = (world.start(variant)?, world.start(variant)?);
    let database = full.database.as_ref().context("a node without its database")?;
    let disk_bytes = fill(database, tasks, load.shape.body)?;
    let (mut pipeline_empty, mut pipeline_full) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        pipeline_empty.push(pipeline::measure(world, variant, &empty, load)?.tasks_per_second);
        pipeline_full.push(pipeline::measure(world, variant, &full, load)?.tasks_per_second);
        eprintln!(
            "pipeline round {round}/{rounds}: empty {:.0}/s, full {:.0}/s",
            pipeline_empty[round - 1],
            pipeline_full[round - 1]
        );
    }
    // The store is measured through the pipeline only: it cannot be reached without the service.
    let ratio = Spread::ratio(&pipeline_full, &pipeline_empty);
    Ok(Ended {
        tasks,
        disk_bytes,
        store_ratio: ratio,
        store_empty: Spread::of(pipeline_empty.iter().copied()),
        store_full: Spread::of(pipeline_full.iter().copied()),
        pipeline_ratio: ratio,
        pipeline_empty: Spread::of(pipeline_empty),
        pipeline_full: Spread::of(pipeline_full),
    })
}

fn fill(database: &Database, tasks: u64, body: usize) -> Result<u64> {
    ask(database, async |client| {
        let (mut left, body) = (i64::try_from(tasks)?, i32::try_from(body)?);
        while left > 0 {
            client.execute(FILL, &[&left.min(STEP), &body]).await?;
            left -= STEP;
            eprintln!("  {} of {tasks} tasks to go", left.max(0));
        }
        client.batch_execute("VACUUM ANALYZE redrive.tasks, redrive.log").await?;
        client.batch_execute("CHECKPOINT").await?;
        let size = client.query_one("SELECT pg_database_size(current_database())", &[]).await?;
        Ok(u64::try_from(size.get::<_, i64>(0))?)
    })
}

/// The number of transactions of the database so far, without this query's own.
pub fn transactions(database: &Database) -> Result<u64> {
    ask(database, async |client| {
        const COUNT: &str =
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
        Ok(u64::try_from(client.query_one(COUNT, &[]).await?.get::<_, i64>(0))?)
    })
}

fn ask<T>(database: &Database, question: impl AsyncFnOnce(&Client) -> Result<T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(database.url(), NoTls).await?;
        tokio::spawn(async move { connection.await.unwrap_or_default() });
        question(&client).await
    })
}
