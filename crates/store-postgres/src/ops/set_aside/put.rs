//! Setting one row aside.

use tokio_postgres::types::Type;

use super::{Damaged, SeenTask, What};
use crate::codec::Cells;
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// Sets the row aside; returns whether it was not set aside before.
pub(super) async fn put(connection: &Connection, node: &str, damaged: &Damaged) -> Result<bool, PostgresError> {
    match &damaged.what {
        What::Task(seen) => match hide_live(connection, node, damaged, seen).await? {
            Found::Hidden => Ok(true),
            Found::Changed => Ok(false),
            Found::NotLive => note_ended(connection, node, damaged, seen).await,
        },
        What::PolicyVersion(_) | What::Blob(_) => note(connection, node, damaged).await,
    }
}

enum Found {
    Hidden,
    /// The row has changed since it was read, or is hidden already.
    Changed,
    NotLive,
}

/// Hides a task by a lease that never ends: the number is the highest time. A task that was claimed by this very call
/// was pending, and its attempt is taken back.
const HIDE_LIVE: &str = "
WITH seen AS MATERIALIZED (
    SELECT * FROM redrive.live WHERE tenant = $1 AND id = $2 FOR UPDATE
), bad AS MATERIALIZED (
    SELECT * FROM seen
    WHERE token = $3 AND lease_until IS NOT DISTINCT FROM $4
      AND (lease_until IS NULL OR lease_since IS NOT NULL OR lease_until < 9223372036854775807)
), hidden AS (
    UPDATE redrive.live SET
        lease_since = NULL, lease_until = 9223372036854775807, node = NULL,
        attempt_number = live.attempt_number - CASE WHEN $5 THEN 1 ELSE 0 END
    WHERE tenant = $1 AND id = $2 AND EXISTS (SELECT FROM bad)
), noted AS (
    INSERT INTO redrive.set_aside AS noted (
        kind, tenant, name, problem, is_refused, node, was_lease_since, was_lease_until, was_node
    )
    SELECT 'task', bad.tenant, bad.id::text, $6, $7, $8, CASE WHEN NOT $5 THEN bad.lease_since END,
           CASE WHEN NOT $5 THEN bad.lease_until END, CASE WHEN NOT $5 THEN bad.node END
    FROM bad
    ON CONFLICT (kind, tenant, name) DO UPDATE SET
        problem = excluded.problem, is_refused = excluded.is_refused, node = excluded.node, set_aside_at = now(),
        was_lease_since = excluded.was_lease_since, was_lease_until = excluded.was_lease_until,
        was_node = excluded.was_node
), counted AS (
    INSERT INTO redrive.task_counts (tenant, policy, policy_version, status, tasks)
    SELECT bad.tenant, bad.policy, bad.policy_version, change.status, change.step
    FROM bad CROSS JOIN (VALUES (3, -1), (2, 1)) AS change (status, step)
    WHERE $5
)
SELECT EXISTS (SELECT FROM seen), EXISTS (SELECT FROM bad)";

async fn hide_live(
    connection: &Connection,
    node: &str,
    damaged: &Damaged,
    seen: &SeenTask,
) -> Result<Found, PostgresError> {
    let SeenTask { id, token, lease_until, is_claimed, is_refused } = seen;
    let rows = connection
        .query(
            HIDE_LIVE,
            &[
                (&damaged.tenant, Type::TEXT),
                (id, Type::UUID),
                (token, Type::INT8),
                (lease_until, Type::INT8),
                (is_claimed, Type::BOOL),
                (&damaged.problem, Type::TEXT),
                (is_refused, Type::BOOL),
                (&node, Type::TEXT),
            ],
        )
        .await?;
    let Some(row) = rows.first() else { return Ok(Found::NotLive) };
    let mut cells = Cells::of(row);
    let (is_live, is_hidden): (bool, bool) = (cells.get()?, cells.get()?);
    Ok(match (is_live, is_hidden) {
        (false, _) => Found::NotLive,
        (true, true) => Found::Hidden,
        (true, false) => Found::Changed,
    })
}

/// Records an ended task and marks its alert as confirmed: an alert that cannot be raised must not block the others.
const NOTE_ENDED: &str = "
WITH silenced AS (
    UPDATE redrive.dead_letters SET announced = true WHERE tenant = $1 AND id = $2 AND NOT announced RETURNING id
), noted AS (
    INSERT INTO redrive.set_aside AS noted (kind, tenant, name, problem, node, was_unannounced)
    VALUES ('task', $1, $2::uuid::text, $3, $4, EXISTS (SELECT FROM silenced))
    ON CONFLICT (kind, tenant, name) DO UPDATE SET was_unannounced = true WHERE excluded.was_unannounced
    RETURNING name
)
SELECT FROM noted";

async fn note_ended(
    connection: &Connection,
    node: &str,
    damaged: &Damaged,
    seen: &SeenTask,
) -> Result<bool, PostgresError> {
    let noted = connection
        .query(
            NOTE_ENDED,
            &[
                (&damaged.tenant, Type::TEXT),
                (&seen.id, Type::UUID),
                (&damaged.problem, Type::TEXT),
                (&node, Type::TEXT),
            ],
        )
        .await?;
    Ok(!noted.is_empty())
}

const NOTE: &str = "
INSERT INTO redrive.set_aside (kind, tenant, name, problem, node) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (kind, tenant, name) DO NOTHING
RETURNING name";

async fn note(connection: &Connection, node: &str, damaged: &Damaged) -> Result<bool, PostgresError> {
    let noted = connection
        .query(
            NOTE,
            &[
                (&damaged.kind(), Type::TEXT),
                (&damaged.tenant, Type::TEXT),
                (&damaged.name(), Type::TEXT),
                (&damaged.problem, Type::TEXT),
                (&node, Type::TEXT),
            ],
        )
        .await?;
    Ok(!noted.is_empty())
}
