//! Ending a pending task because a retry budget is spent.

use redrive_core::{Reason, Status, Timestamp};
use redrive_store::{SuppressOutcome, Suppression, rules};
use tokio_postgres::types::Type;

use crate::codec::{Uuid, millis, status_code};
use crate::connection::Connection;
use crate::ops::find::{self, Locked};
use crate::postgres_error::PostgresError;

/// The log entry of the end is like that of an overdue task: a token above that of every claim, and the number -1, so that
/// a replay gives the token back.
const END: &str = "
WITH gone AS (
    DELETE FROM redrive.live WHERE tenant = $1 AND id = $2 RETURNING *
), logged AS (
    INSERT INTO redrive.log (
        tenant, id, token, number, status, reason, ended_at, attempt_number, attempts_before, run, run_started_at,
        deadline_at, task_backoff_us, dns_failures, cancel_requested, last_error_kind, last_error_message
    )
    SELECT tenant, id, token + 1, -1, 6, $3, $4, attempt_number, attempts_before, run, run_started_at,
           deadline_at, backoff_us, nullif(dns_failures, 0), cancel_requested, error_kind, error_message
    FROM gone
), dead AS (
    INSERT INTO redrive.dead_letters (tenant, id, ended_at, run) SELECT tenant, id, $4, run FROM gone
)
INSERT INTO redrive.task_counts (tenant, policy, policy_version, status, tasks)
SELECT tenant, policy, policy_version, change.status, change.step
FROM gone CROSS JOIN (VALUES (2, -1), (6, 1)) AS change (status, step)";

/// Runs inside a transaction.
pub(crate) async fn suppress(
    connection: &Connection,
    suppression: &Suppression,
    now: Timestamp,
) -> Result<SuppressOutcome, PostgresError> {
    let Suppression { tenant, id, attempt_number } = suppression;
    let mut task = match find::lock(connection, tenant, *id).await? {
        Locked::Live(task) => task,
        Locked::Ended(task) => return Ok(SuppressOutcome::NotWaiting(task)),
        Locked::NotFound => return Ok(SuppressOutcome::NotFound),
    };
    if !rules::suppress(&mut task, *attempt_number, now) {
        return Ok(SuppressOutcome::NotWaiting(task));
    }
    let (tenant, id, reason) = (tenant.as_str(), Uuid::from(*id), Reason::Budget.as_str());
    let arguments = [
        (&tenant as _, Type::TEXT),
        (&id as _, Type::UUID),
        (&reason as _, Type::TEXT),
        (&millis(now) as _, Type::INT8),
    ];
    connection.query(END, &arguments).await?;
    Ok(SuppressOutcome::Done(task))
}

/// The numbers that the statement contains as literals.
const _: () = assert!(status_code(Status::Pending) == 2 && status_code(Status::Exhausted) == 6);
