//! Making a pending task due now.

use redrive_core::Timestamp;
use redrive_store::rules::{self, BringForward};
use redrive_store::{BringForwardOutcome, TaskKey};
use tokio_postgres::types::Type;

use crate::codec::{Uuid, millis};
use crate::connection::Connection;
use crate::ops::find::{self, Locked};
use crate::postgres_error::PostgresError;

const BRING: &str = "UPDATE redrive.live SET due_at = $3 WHERE tenant = $1 AND id = $2";

/// Runs inside a transaction.
pub(crate) async fn bring_forward(
    connection: &Connection,
    key: &TaskKey,
    now: Timestamp,
) -> Result<BringForwardOutcome, PostgresError> {
    let mut task = match find::lock(connection, &key.tenant, key.id).await? {
        Locked::Live(task) => task,
        Locked::Ended(task) => return Ok(BringForwardOutcome::AlreadyEnded(task)),
        Locked::NotFound => return Ok(BringForwardOutcome::NotFound),
    };
    match rules::bring_forward(&mut task, now) {
        BringForward::Moved => {
            let (tenant, id, now) = (key.tenant.as_str(), Uuid::from(key.id), millis(now));
            connection.query(BRING, &[(&tenant, Type::TEXT), (&id, Type::UUID), (&now, Type::INT8)]).await?;
        }
        BringForward::AlreadyDue => {}
        BringForward::InFlight => return Ok(BringForwardOutcome::InFlight(task)),
        BringForward::AlreadyEnded => return Ok(BringForwardOutcome::AlreadyEnded(task)),
    }
    Ok(BringForwardOutcome::Done(task))
}
