//! Removing tasks that ended long ago, with everything that belongs to them, a few at a time.

use redrive_core::{TaskId, Timestamp};
use redrive_store::{CleanFrom, Cleaned};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::{Cells, Uuid, millis};
use crate::connection::Connection;
use crate::ops::newest_task;
use crate::ops::set_aside::{Aside, Damaged, SeenTask, readable};
use crate::postgres_error::PostgresError;

/// The oldest tasks of all tenants between two ids, and when each ended, if it has.
const LOOK: &str = "
SELECT looked.id, looked.tenant, ended.ended_at
FROM (
    SELECT oldest.tenant, oldest.id
    FROM (SELECT DISTINCT tenant FROM redrive.policies) AS tenants
    CROSS JOIN LATERAL (
        SELECT tasks.tenant, tasks.id FROM redrive.tasks
        WHERE tasks.tenant = tenants.tenant AND tasks.id > $1 AND tasks.id < $3
        ORDER BY tasks.id
        LIMIT $2
    ) AS oldest
    ORDER BY oldest.id
    LIMIT $2
) AS looked
LEFT JOIN LATERAL (
    SELECT live.id FROM redrive.live WHERE live.tenant = looked.tenant AND live.id = looked.id LIMIT 1
) AS live ON true
LEFT JOIN LATERAL (
    SELECT log.ended_at FROM redrive.log
    WHERE live.id IS NULL AND log.tenant = looked.tenant AND log.id = looked.id
    ORDER BY log.token DESC
    LIMIT 1
) AS ended ON true
ORDER BY looked.id";

/// Removes the tasks that are still ended, and ended before `$3`. A dead letter may be replayed at the same time, and
/// may even have ended again since it was read: a replay locks its row in `dead_letters`. Tasks that are set aside are
/// kept.
const REMOVE: &str = "
WITH old AS MATERIALIZED (
    SELECT given.tenant, given.id, tasks.policy, tasks.policy_version
    FROM unnest($1::text[], $2::uuid[]) AS given (tenant, id)
    CROSS JOIN LATERAL (
        SELECT tasks.policy, tasks.policy_version FROM redrive.tasks
        WHERE tasks.tenant = given.tenant AND tasks.id = given.id
          AND NOT EXISTS (
              SELECT FROM redrive.set_aside AS noted
              WHERE noted.kind = 'task' AND noted.tenant = given.tenant AND noted.name = given.id::text
          )
          AND NOT EXISTS (SELECT FROM redrive.live WHERE live.tenant = given.tenant AND live.id = given.id)
          AND (
              SELECT log.ended_at FROM redrive.log
              WHERE log.tenant = given.tenant AND log.id = given.id
              ORDER BY log.token DESC
              LIMIT 1
          ) < $3
        FOR UPDATE
    ) AS tasks
), notes AS (
    DELETE FROM redrive.dead_letters USING old WHERE dead_letters.tenant = old.tenant AND dead_letters.id = old.id
), lines AS (
    DELETE FROM redrive.log USING old WHERE log.tenant = old.tenant AND log.id = old.id
    RETURNING log.tenant, log.id, log.token, log.status
), ends AS MATERIALIZED (
    SELECT DISTINCT ON (tenant, id) tenant, id, status FROM lines ORDER BY tenant, id, token DESC
), gone AS (
    DELETE FROM redrive.tasks USING old WHERE tasks.tenant = old.tenant AND tasks.id = old.id
    RETURNING tasks.tenant, tasks.id, tasks.policy, tasks.policy_version
), counted AS (
    INSERT INTO redrive.task_counts (tenant, policy, policy_version, status, tasks)
    SELECT gone.tenant, gone.policy, gone.policy_version, ends.status, -count(*)
    FROM gone JOIN ends USING (tenant, id)
    GROUP BY 1, 2, 3, 4
)
SELECT count(*) FROM gone";

/// The rows of dead letters are locked before their tasks, as in a replay.
const LOCK_NOTES: &str = "
SELECT FROM unnest($1::text[], $2::uuid[]) AS given (tenant, id)
JOIN redrive.dead_letters AS dead ON dead.tenant = given.tenant AND dead.id = given.id
ORDER BY dead.tenant, dead.id
FOR UPDATE OF dead";

/// Runs inside a transaction.
pub(crate) async fn clean(
    connection: &Connection,
    aside: &Aside,
    ended_before: Timestamp,
    from: CleanFrom,
    limit: usize,
) -> Result<Cleaned, PostgresError> {
    let after = match from {
        CleanFrom::Start => Uuid::LOWEST,
        CleanFrom::After(id) => Uuid::from(id),
    };
    // A step that looks at nothing would repeat endlessly.
    let limit = limit.max(1);
    let (looked, last) = look(connection, aside, after, ended_before, limit).await?;
    let next = last.map(CleanFrom::After);
    let old: Vec<_> = looked.into_iter().filter(|seen| seen.ended_at.is_some_and(|at| at < ended_before)).collect();
    let removed = if old.is_empty() { 0 } else { remove(connection, &old, ended_before).await? };
    if next.is_none() {
        connection.query(REMOVE_VERSIONS, &[]).await?;
    }
    Ok(Cleaned { removed, next })
}

struct Seen {
    id: TaskId,
    tenant: String,
    ended_at: Option<Timestamp>,
}

/// Reads the next tasks that may have ended before `ended_before`. A task's id contains its time of acceptance, and a
/// task that was accepted later cannot have ended before. Also returns the last id, if there may be more behind it.
async fn look(
    connection: &Connection,
    aside: &Aside,
    after: Uuid,
    ended_before: Timestamp,
    limit: usize,
) -> Result<(Vec<Seen>, Option<TaskId>), PostgresError> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let below = Uuid::from(TaskId::from_parts(TaskId::first_sequence(ended_before), 0));
    let rows = connection.query(LOOK, &[(&after, Type::UUID), (&most, Type::INT8), (&below, Type::UUID)]).await?;
    let (mut looked, mut damaged) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in &rows {
        looked.extend(readable(read(row), &mut damaged, |failure| damaged_task(row, failure))?);
    }
    aside.put(connection, &damaged).await?;
    let last = rows.iter().rev().find_map(|row| Cells::of(row).task_id().ok());
    Ok((looked, last.filter(|_| rows.len() == limit)))
}

fn read(row: &Row) -> Result<Seen, PostgresError> {
    let mut cells = Cells::of(row);
    Ok(Seen { id: cells.task_id()?, tenant: cells.get()?, ended_at: cells.optional_timestamp()? })
}

fn damaged_task(row: &Row, failure: &PostgresError) -> Result<Damaged, PostgresError> {
    let mut cells = Cells::of(row);
    let (id, tenant) = (cells.get()?, cells.get()?);
    let seen = SeenTask { id, token: None, lease_until: None, is_claimed: false, is_refused: false };
    Ok(Damaged::task(tenant, seen, failure))
}

async fn remove(connection: &Connection, old: &[Seen], ended_before: Timestamp) -> Result<usize, PostgresError> {
    let newest = newest_task::newest_kept(connection).await?;
    if let Some(newest) = newest.filter(|newest| old.iter().any(|seen| seen.id == *newest)) {
        newest_task::remember(connection, newest).await?;
    }
    let tenants: Vec<&str> = old.iter().map(|seen| seen.tenant.as_str()).collect();
    let ids: Vec<Uuid> = old.iter().map(|seen| seen.id.into()).collect();
    let given = [(&tenants as _, Type::TEXT_ARRAY), (&ids as _, Type::UUID_ARRAY)];
    connection.find_by_key().await?;
    connection.query(LOCK_NOTES, &given).await?;
    let [tenants, ids] = given;
    let rows = connection.query(REMOVE, &[tenants, ids, (&millis(ended_before), Type::INT8)]).await?;
    rows.first().map_or(Ok(0), |row| Cells::of(row).narrow())
}

/// Versions of deleted policies that no task refers to any more.
const REMOVE_VERSIONS: &str = "
DELETE FROM redrive.policy_versions
WHERE deleted AND coalesce((
    SELECT sum(task_counts.tasks) FROM redrive.task_counts
    WHERE task_counts.tenant = policy_versions.tenant AND task_counts.policy = policy_versions.policy
      AND task_counts.policy_version = policy_versions.version
), 0) = 0";
