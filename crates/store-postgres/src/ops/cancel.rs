//! Taking a task back.

use redrive_core::{Reason, Status, TaskId, TenantId, Timestamp};
use redrive_store::Cancelled;
use tokio_postgres::types::Type;

use crate::codec::{Uuid, millis};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::ops::find::{self, Locked};

/// The line of the end has a token of its own, above that of every claim: nothing was sent under it.
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
    tenant: &TenantId,
    id: TaskId,
    now: Timestamp,
) -> Result<Cancelled, Failure> {
    let mut task = match find::lock(connection, tenant, id).await? {
        Locked::Live(task) => task,
        Locked::Ended(task) => return Ok(Cancelled::AlreadyEnded(task)),
        Locked::NotFound => return Ok(Cancelled::NotFound),
    };
    let (name, key) = (tenant.as_str(), Uuid::from(id));
    let key = [(&name as _, Type::TEXT), (&key as _, Type::UUID)];
    if task.status == Status::InFlight {
        // The attempt under way may still succeed: its settlement decides.
        connection.query(MARK, &key).await?;
        task.cancel_requested = true;
    } else {
        let [tenant, id] = key;
        let reason = Reason::Cancelled;
        connection.query(END, &[tenant, id, (&reason.as_str(), Type::TEXT), (&millis(now), Type::INT8)]).await?;
        task.status = Status::Cancelled;
        task.reason = Some(reason);
        task.ended_at = Some(now);
        task.next_attempt_at = None;
    }
    Ok(Cancelled::Done(task))
}
