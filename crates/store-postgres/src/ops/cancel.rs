//! Cancelling a task.

use redrive_core::{Reason, Timestamp};
use redrive_store::rules::{self, Cancel};
use redrive_store::{CancelOutcome, TaskKey};
use tokio_postgres::types::Type;

use crate::codec::{Uuid, millis};
use crate::connection::Connection;
use crate::ops::find::{self, Locked};
use crate::postgres_error::PostgresError;

/// The log entry of the end has a separate token, above that of every claim, because nothing was sent under it.
const END: &str = "
WITH gone AS (
    DELETE FROM redrive.live WHERE tenant = $1 AND id = $2 RETURNING *
), logged AS (
    INSERT INTO redrive.log (
        tenant, id, token, number, status, reason, ended_at, attempt_number, attempts_before, run, run_started_at,
        deadline_at, task_backoff_us, dns_failures, cancel_requested, last_error_kind, last_error_message
    )
    SELECT tenant, id, token + 1, attempt_number, 7, $3, $4, attempt_number, attempts_before, run, run_started_at,
           deadline_at, backoff_us, nullif(dns_failures, 0), cancel_requested, error_kind, error_message
    FROM gone
)
INSERT INTO redrive.task_counts (tenant, policy, policy_version, status, tasks)
SELECT tenant, policy, policy_version, change.status, change.step
FROM gone CROSS JOIN (VALUES (2, -1), (7, 1)) AS change (status, step)";

const MARK: &str = "UPDATE redrive.live SET cancel_requested = true WHERE tenant = $1 AND id = $2";

/// Runs inside a transaction.
pub(crate) async fn cancel(
    connection: &Connection,
    key: &TaskKey,
    now: Timestamp,
) -> Result<CancelOutcome, PostgresError> {
    let mut task = match find::lock(connection, &key.tenant, key.id).await? {
        Locked::Live(task) => task,
        Locked::Ended(task) => return Ok(CancelOutcome::AlreadyEnded(task)),
        Locked::NotFound => return Ok(CancelOutcome::NotFound),
    };
    let (tenant, id) = (key.tenant.as_str(), Uuid::from(key.id));
    let (tenant, id) = ((&tenant as _, Type::TEXT), (&id as _, Type::UUID));
    match rules::cancel(&mut task, now) {
        Cancel::Ended => {
            let reason = Reason::Cancelled.as_str();
            connection.query(END, &[tenant, id, (&reason, Type::TEXT), (&millis(now), Type::INT8)]).await?;
        }
        Cancel::Requested => drop(connection.query(MARK, &[tenant, id]).await?),
        Cancel::AlreadyEnded => return Ok(CancelOutcome::AlreadyEnded(task)),
    }
    Ok(CancelOutcome::Done(task))
}
