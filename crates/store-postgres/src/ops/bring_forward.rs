//! Having a pending task tried now.

use redrive_core::{Status, TaskId, TenantId, Timestamp};
use redrive_store::BroughtForward;
use tokio_postgres::types::Type;

use crate::codec::{Uuid, millis};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::ops::find::{self, Locked};

const BRING: &str = "UPDATE redrive.live SET due_at = $3 WHERE tenant = $1 AND id = $2";

/// Runs inside a transaction.
pub(crate) async fn bring_forward(
    connection: &Connection,
    tenant: &TenantId,
    id: TaskId,
    now: Timestamp,
) -> Result<BroughtForward, Failure> {
    let mut task = match find::lock(connection, tenant, id).await? {
        Locked::Live(task) => task,
        Locked::Ended(task) => return Ok(BroughtForward::AlreadyEnded(task)),
        Locked::NotFound => return Ok(BroughtForward::NotFound),
    };
    if task.status == Status::InFlight {
        return Ok(BroughtForward::InFlight(task));
    }
    if task.next_attempt_at.is_none_or(|due| due > now) {
        let (tenant, id, now_millis) = (tenant.as_str(), Uuid::from(id), millis(now));
        connection.query(BRING, &[(&tenant, Type::TEXT), (&id, Type::UUID), (&now_millis, Type::INT8)]).await?;
        task.next_attempt_at = Some(now);
    }
    Ok(BroughtForward::Done(task))
}
