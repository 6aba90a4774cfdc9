//! The numbers of tasks by status, without counting rows one by one.

use redrive_core::TenantId;
use redrive_store::Counts;
use tokio_postgres::types::Type;

use crate::codec::{Cells, status};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

const COUNTS: &str = "
SELECT status, sum(tasks)::bigint FROM redrive.task_counts WHERE tenant = $1 GROUP BY status HAVING sum(tasks) > 0";

pub(crate) async fn counts(connection: &Connection, tenant: &TenantId) -> Result<Counts, PostgresError> {
    let mut counts = Counts::new();
    for row in &connection.query(COUNTS, &[(&tenant.as_str(), Type::TEXT)]).await? {
        let mut cells = Cells::of(row);
        let code: i16 = cells.get()?;
        let status = status(code).ok_or_else(|| cells.wrong(format_args!("status {code}")))?;
        counts.insert(status, cells.unsigned()?);
    }
    Ok(counts)
}

/// Merges the rows of counts that have accumulated. Only one process at a time does that; the others skip it.
const ADD_UP: &str = "
WITH mine AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtext('redrive.task_counts'), 0) AS is_mine
), taken AS (
    DELETE FROM redrive.task_counts WHERE (SELECT is_mine FROM mine)
    RETURNING tenant, policy, policy_version, status, tasks
)
INSERT INTO redrive.task_counts (tenant, policy, policy_version, status, tasks)
SELECT tenant, policy, policy_version, status, sum(tasks) FROM taken
GROUP BY tenant, policy, policy_version, status
HAVING sum(tasks) <> 0";

pub(crate) async fn add_up(connection: &Connection) -> Result<(), PostgresError> {
    connection.query(ADD_UP, &[]).await.map(drop)
}
