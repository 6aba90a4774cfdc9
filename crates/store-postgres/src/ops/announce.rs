//! Which dead letters nobody has been alerted to yet.

use redrive_core::{Task, Timestamp};
use redrive_store::Announced;
use tokio_postgres::types::Type;

use crate::codec::{TaskRow, Uuid, any_task, millis};
use crate::connection::Connection;
use crate::failure::Failure;

const UNANNOUNCED: &str = concat!(
    "SELECT ",
    any_task!(),
    " FROM (
          SELECT tenant, id, ended_at FROM redrive.dead_letters
          WHERE NOT announced AND ended_at < $1
          ORDER BY ended_at, tenant, id
          LIMIT $2
      ) AS dead
      JOIN redrive.tasks ON tasks.tenant = dead.tenant AND tasks.id = dead.id",
    any_task!(join),
    "      ORDER BY dead.ended_at, dead.id"
);

pub(crate) async fn unannounced(
    connection: &Connection,
    ended_before: Timestamp,
    limit: usize,
) -> Result<Vec<Task>, Failure> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = connection.query(UNANNOUNCED, &[(&millis(ended_before), Type::INT8), (&limit, Type::INT8)]).await?;
    rows.iter().map(|row| Ok(TaskRow::read(row)?.task)).collect()
}

/// The rows are locked in the order of their ids, as everywhere.
const ANNOUNCED: &str = "
UPDATE redrive.dead_letters SET announced = true
FROM (
    SELECT dead.tenant, dead.id
    FROM unnest($1::text[], $2::uuid[], $3::bigint[]) AS said (tenant, id, run)
    JOIN redrive.dead_letters AS dead
      ON dead.tenant = said.tenant AND dead.id = said.id AND dead.run = said.run AND NOT dead.announced
    ORDER BY dead.tenant, dead.id
    FOR UPDATE OF dead
) AS raised
WHERE dead_letters.tenant = raised.tenant AND dead_letters.id = raised.id";

pub(crate) async fn announced(connection: &Connection, dead_letters: &[Announced]) -> Result<(), Failure> {
    let tenants: Vec<&str> = dead_letters.iter().map(|dead| dead.tenant.as_str()).collect();
    let ids: Vec<Uuid> = dead_letters.iter().map(|dead| dead.id.into()).collect();
    let runs: Vec<i64> = dead_letters.iter().map(|dead| dead.run.into()).collect();
    connection
        .query(ANNOUNCED, &[(&tenants, Type::TEXT_ARRAY), (&ids, Type::UUID_ARRAY), (&runs, Type::INT8_ARRAY)])
        .await?;
    Ok(())
}
