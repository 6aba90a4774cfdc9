//! Dead letters whose alert has not been confirmed.

use redrive_core::{Task, Timestamp};
use redrive_store::RaisedAlert;
use tokio_postgres::types::Type;

use crate::codec::{TaskRow, Uuid, any_task, millis};
use crate::connection::Connection;
use crate::ops::set_aside::{Aside, Damaged, readable};
use crate::postgres_error::PostgresError;

const UNANNOUNCED: &str = concat!(
    "SELECT ",
    any_task!(),
    " FROM (
          SELECT tenant, id, ended_at FROM redrive.dead_letters
          WHERE NOT announced AND ended_at < $1
          ORDER BY ended_at, tenant, id
          LIMIT $2
      ) AS dead
      JOIN LATERAL (
          SELECT * FROM redrive.tasks WHERE tasks.tenant = dead.tenant AND tasks.id = dead.id LIMIT 1
      ) AS tasks ON true",
    any_task!(join),
    "      ORDER BY dead.ended_at, dead.id"
);

/// How often they are read again because some rows were set aside.
const ROUNDS: usize = 20;

pub(crate) async fn pending(
    connection: &Connection,
    aside: &Aside,
    ended_before: Timestamp,
    limit: usize,
) -> Result<Vec<Task>, PostgresError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut tasks = Vec::new();
    for _ in 0..ROUNDS {
        let rows = connection.query(UNANNOUNCED, &[(&millis(ended_before), Type::INT8), (&limit, Type::INT8)]).await?;
        let mut damaged = Vec::new();
        tasks.clear();
        for row in &rows {
            let read = readable(TaskRow::read(row), &mut damaged, |failure| Damaged::task_row(row, failure))?;
            tasks.extend(read.map(|row| row.task));
        }
        if aside.put_or_warn(connection, &damaged).await == 0 {
            break;
        }
    }
    Ok(tasks)
}

/// Marks alerts as confirmed by an INSERT whose row always exists already: an UPDATE would need a join, and the planner
/// may expect few rows and scan the table. The rows are locked in the order of their ids, as in every other call.
const ANNOUNCED: &str = "
INSERT INTO redrive.dead_letters (tenant, id, ended_at, run, announced)
SELECT DISTINCT ON (dead.tenant, dead.id) dead.tenant, dead.id, dead.ended_at, dead.run, true
FROM unnest($1::text[], $2::uuid[], $3::bigint[]) AS said (tenant, id, run)
CROSS JOIN LATERAL (
    SELECT * FROM redrive.dead_letters AS noted
    WHERE noted.tenant = said.tenant AND noted.id = said.id AND noted.run = said.run AND (noted.announced)::int = 0
    FOR UPDATE
) AS dead
ORDER BY dead.tenant, dead.id
ON CONFLICT (tenant, id) DO UPDATE SET announced = true";

pub(crate) async fn confirm(connection: &Connection, dead_letters: &[RaisedAlert]) -> Result<(), PostgresError> {
    let tenants: Vec<&str> = dead_letters.iter().map(|dead| dead.tenant.as_str()).collect();
    let ids: Vec<Uuid> = dead_letters.iter().map(|dead| dead.id.into()).collect();
    let runs: Vec<i64> = dead_letters.iter().map(|dead| dead.run.into()).collect();
    connection
        .query(ANNOUNCED, &[(&tenants, Type::TEXT_ARRAY), (&ids, Type::UUID_ARRAY), (&runs, Type::INT8_ARRAY)])
        .await?;
    Ok(())
}
