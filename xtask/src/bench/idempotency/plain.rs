//! The same work by a plain program: one table, `INSERT … ON CONFLICT` and `UPDATE`, each its own commit, and no service.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use redrive_testbed::Database;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use super::options::Load;

/// The most connections: more of them make PostgreSQL slower.
const CONNECTIONS: usize = 64;

const TABLE: &str = "
CREATE TABLE idempotency_records (
    scope text NOT NULL, operation_type text NOT NULL, idempotency_key text NOT NULL, request_hash bytea NOT NULL,
    status text NOT NULL, owner_execution_id uuid NOT NULL, response_code int, response_body bytea,
    started_at timestamptz NOT NULL, updated_at timestamptz NOT NULL, expires_at timestamptz NOT NULL,
    PRIMARY KEY (scope, operation_type, idempotency_key)
);
CREATE INDEX ON idempotency_records (expires_at);";

const RESERVE: &str = "
INSERT INTO idempotency_records (scope, operation_type, idempotency_key, request_hash, status, owner_execution_id,
    started_at, updated_at, expires_at)
VALUES ('default', 'bench', $1, $2, 'IN_PROGRESS', gen_random_uuid(), now(), now(), now() + interval '24 hours')
ON CONFLICT DO NOTHING
RETURNING owner_execution_id::text";

const COMPLETE: &str = "
UPDATE idempotency_records SET status = 'SUCCEEDED', response_code = 201, response_body = $3, updated_at = now(),
    expires_at = now() + interval '24 hours'
WHERE scope = 'default' AND operation_type = 'bench' AND idempotency_key = $1 AND owner_execution_id = $2::text::uuid";

/// Pairs per second.
pub(super) fn per_second(database: &Database, load: &Load) -> Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(database.url(), NoTls).await?;
        let connection = tokio::spawn(connection);
        client.batch_execute(TABLE).await?;
        drop(client);
        connection.await??;
        let mut callers = JoinSet::new();
        let begin = Instant::now();
        for _ in 0..load.callers.min(CONNECTIONS) {
            callers.spawn(call_until(database.url().to_owned(), begin + load.duration));
        }
        let mut pairs = 0;
        while let Some(ended) = callers.join_next().await {
            pairs += ended.context("a caller panicked")??;
        }
        Ok(f64::from(pairs) / begin.elapsed().as_secs_f64())
    })
}

async fn call_until(url: String, end: Instant) -> Result<u32> {
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    let connection = tokio::spawn(connection);
    let (reserve, complete) = (client.prepare(RESERVE).await?, client.prepare(COMPLETE).await?);
    let mut random = Rng::new();
    let mut pairs = 0;
    while Instant::now() < end {
        let key = format!("{:032x}", random.u128(..));
        let row = client.query_one(&reserve, &[&key, &&[1_u8; 32][..]]).await?;
        let owner: String = row.try_get(0)?;
        let body = &br#"{"payment": "pay_123"}"#[..];
        if client.execute(&complete, &[&key, &owner, &body]).await? != 1 {
            bail!("a completion changed nothing");
        }
        pairs += 1;
    }
    drop(client);
    connection.await??;
    Ok(pairs)
}
