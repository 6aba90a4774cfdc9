//! A task's attempt log.

use redrive_core::{Attempt, TaskId, TenantId};
use tokio_postgres::types::Type;

use crate::codec::{Uuid, attempt, attempt_columns};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

const EXISTS: &str = "SELECT FROM redrive.tasks WHERE tenant = $1 AND id = $2";

/// The attempts of a task. A log entry without an outcome is an end for which nothing was sent.
const ATTEMPTS: &str = concat!(
    "SELECT ",
    attempt_columns!(),
    " FROM redrive.log
      WHERE log.tenant = $1 AND log.id = $2 AND log.number > $3 AND log.outcome IS NOT NULL
      ORDER BY log.number, log.token
      LIMIT $4"
);

pub(crate) async fn attempts(
    connection: &Connection,
    tenant: &TenantId,
    id: TaskId,
    after: u32,
    limit: usize,
) -> Result<Option<Vec<Attempt>>, PostgresError> {
    let (tenant, id) = (tenant.as_str(), Uuid::from(id));
    if connection.query(EXISTS, &[(&tenant, Type::TEXT), (&id, Type::UUID)]).await?.is_empty() {
        return Ok(None);
    }
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = connection
        .query(
            ATTEMPTS,
            &[(&tenant, Type::TEXT), (&id, Type::UUID), (&i64::from(after), Type::INT8), (&limit, Type::INT8)],
        )
        .await?;
    rows.iter().map(attempt).collect::<Result<_, _>>().map(Some)
}
