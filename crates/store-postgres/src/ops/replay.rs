//! Replaying a dead letter.

use redrive_core::Timestamp;
use redrive_store::{ReplayOutcome, TaskKey};
use tokio_postgres::types::Type;

use crate::codec::{Uuid, millis, status_code, whole_millis};
use crate::connection::Connection;
use crate::ops::{find, policies};
use crate::postgres_error::PostgresError;

/// Locks the row of a dead letter, so that only one transaction replays it.
const LOCK: &str = "SELECT FROM redrive.dead_letters WHERE tenant = $1 AND id = $2 FOR UPDATE";

/// Makes the task pending. The log entry of an end without a claim has a number below zero. It is deleted, and the next
/// claim uses its token.
const QUEUE: &str = "
WITH revived AS (
    DELETE FROM redrive.dead_letters WHERE tenant = $1 AND id = $2
), let_go AS (
    UPDATE redrive.log SET answer_body_ref = NULL WHERE tenant = $1 AND id = $2 AND answer_body_ref IS NOT NULL
), unclaimed AS (
    DELETE FROM redrive.log WHERE tenant = $1 AND id = $2 AND number < 0
), queued AS (
    INSERT INTO redrive.live (
        tenant, id, due_at, token, attempt_number, attempts_before, run, run_started_at, deadline_at,
        attempt_timeout_ms, policy_version, cancel_requested, dependency, policy, error_kind, error_message,
        max_attempts
    )
    SELECT log.tenant, log.id, $4, log.token - (log.number < 0)::int, log.attempt_number, log.attempt_number, $5, $4, $6,
           $7, $8, false, $9, $10, log.last_error_kind, log.last_error_message, $11
    FROM redrive.log
    WHERE log.tenant = $1 AND log.id = $2
    ORDER BY log.token DESC
    LIMIT 1
)
INSERT INTO redrive.task_counts (tenant, policy, policy_version, status, tasks)
SELECT $1, $10, $8, change.status, change.step FROM (VALUES ($3::smallint, -1), (2, 1)) AS change (status, step)";

/// Runs inside a transaction.
pub(crate) async fn replay(
    connection: &Connection,
    key: &TaskKey,
    now: Timestamp,
) -> Result<ReplayOutcome, PostgresError> {
    let (name, id) = (key.tenant.as_str(), Uuid::from(key.id));
    let is_dead = !connection.query(LOCK, &[(&name, Type::TEXT), (&id, Type::UUID)]).await?.is_empty();
    let Some(found) = find::state(connection, &key.tenant, key.id).await? else { return Ok(ReplayOutcome::NotFound) };
    let dead = found.task;
    if !is_dead {
        return Ok(ReplayOutcome::NotDead(Box::new(dead)));
    }
    if !policies::pin(connection, &key.tenant, &dead.policy).await? {
        return Ok(ReplayOutcome::PolicyGone(Box::new(dead)));
    }
    let mut task = dead.clone();
    task.begin_next_run(now);
    connection
        .query(
            QUEUE,
            &[
                (&name, Type::TEXT),
                (&id, Type::UUID),
                (&status_code(dead.status), Type::INT2),
                (&millis(now), Type::INT8),
                (&i64::from(task.run), Type::INT8),
                (&millis(task.deadline_at), Type::INT8),
                (&whole_millis(task.attempt_timeout), Type::INT8),
                (&i64::from(task.policy.version), Type::INT8),
                (&task.lane.dependency.as_str(), Type::TEXT),
                (&task.policy.id.as_str(), Type::TEXT),
                (&i64::from(task.max_attempts), Type::INT8),
            ],
        )
        .await?;
    Ok(ReplayOutcome::Done(Box::new(task)))
}
