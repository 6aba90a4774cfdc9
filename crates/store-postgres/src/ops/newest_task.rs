//! The newest task id ever stored here.

use redrive_core::TaskId;
use tokio_postgres::types::Type;

use crate::codec::{Cells, Uuid};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// The newest id of all tenants, by one index probe for each tenant. Every tenant with tasks has or had a policy, so
/// the tenants come from there.
const KEPT: &str = "
SELECT newest.id
FROM (SELECT DISTINCT tenant FROM redrive.policies) AS tenants
CROSS JOIN LATERAL (
    SELECT tasks.id FROM redrive.tasks WHERE tasks.tenant = tenants.tenant ORDER BY tasks.id DESC LIMIT 1
) AS newest
ORDER BY newest.id DESC
LIMIT 1";

const CLEANED: &str = "SELECT value::uuid FROM redrive.meta WHERE name = 'newest_cleaned'";

pub(crate) async fn newest_task(connection: &Connection) -> Result<Option<TaskId>, PostgresError> {
    let cleaned = connection.query(CLEANED, &[]).await?;
    let cleaned = cleaned.first().map(|row| Cells::of(row).task_id()).transpose()?;
    Ok(newest_kept(connection).await?.max(cleaned))
}

/// The newest task that is still stored.
pub(crate) async fn newest_kept(connection: &Connection) -> Result<Option<TaskId>, PostgresError> {
    let rows = connection.query(KEPT, &[]).await?;
    rows.first().map(|row| Cells::of(row).task_id()).transpose()
}

/// Records the newest task that was ever cleaned away.
const REMEMBER: &str = "
INSERT INTO redrive.meta (name, value) VALUES ('newest_cleaned', $1::uuid::text)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
WHERE excluded.value::uuid > meta.value::uuid";

/// Records that this task is about to be cleaned away.
pub(crate) async fn remember(connection: &Connection, id: TaskId) -> Result<(), PostgresError> {
    connection.query(REMEMBER, &[(&Uuid::from(id), Type::UUID)]).await.map(drop)
}
