//! A task: its request and its state.

use std::time::Duration;

use redrive_core::attempt::LastError;
use redrive_core::task::PolicyRef;
use redrive_core::{CorrelationId, Dependency, ErrorType, IdempotencyKey, Lane, PolicyId, Reason, Task, TenantId};
use redrive_store::Lease;
use tokio_postgres::Row;

use super::{Cells, status, unescape};
use crate::postgres_error::PostgresError;

/// The columns of a live task, in the order that [`TaskRow::read`] expects: from `tasks` and `live`.
macro_rules! live_task {
    () => {
        "tasks.tenant, tasks.id, tasks.dependency, tasks.idempotency_key, tasks.correlation_id, tasks.trace_parent,
         tasks.policy, tasks.policy_version,
         (CASE WHEN live.lease_until IS NULL THEN 2 ELSE 3 END)::smallint AS status, NULL::text AS reason,
         live.attempt_number, live.run, live.attempts_before, tasks.max_attempts, tasks.attempt_timeout_ms,
         tasks.created_at, live.run_started_at, live.deadline_at, live.due_at, NULL::bigint AS ended_at, live.backoff_us,
         live.dns_failures, live.cancel_requested, live.error_kind, live.error_message, live.token, live.lease_since, live.lease_until"
    };
}
pub(crate) use live_task;

/// The number of those columns, which is where the columns of a joined table start.
pub(crate) const LIVE_TASK_COLUMN_COUNT: usize = 28;
/// Where the token and the end of the lease are.
pub(crate) const TOKEN_COLUMN: usize = LIVE_TASK_COLUMN_COUNT - 3;
pub(crate) const LEASE_UNTIL_COLUMN: usize = LIVE_TASK_COLUMN_COUNT - 1;

/// The same columns for any task: from `tasks`, and from `live` if it is live or else from the log entry of its end,
/// called `ended`; and how these are joined to `tasks`.
macro_rules! any_task {
    () => {
        "tasks.tenant, tasks.id, tasks.dependency, tasks.idempotency_key, tasks.correlation_id, tasks.trace_parent,
         tasks.policy, tasks.policy_version,
         (CASE WHEN live.id IS NULL THEN ended.status WHEN live.lease_until IS NULL THEN 2 ELSE 3 END)::smallint AS status,
         ended.reason, coalesce(live.attempt_number, ended.attempt_number), coalesce(live.run, ended.run),
         coalesce(live.attempts_before, ended.attempts_before), tasks.max_attempts, tasks.attempt_timeout_ms,
         tasks.created_at, coalesce(live.run_started_at, ended.run_started_at),
         coalesce(live.deadline_at, ended.deadline_at), live.due_at, ended.ended_at,
         coalesce(live.backoff_us, ended.task_backoff_us), coalesce(live.dns_failures, ended.dns_failures, 0),
         coalesce(live.cancel_requested, ended.cancel_requested),
         coalesce(live.error_kind, ended.last_error_kind), coalesce(live.error_message, ended.last_error_message),
         coalesce(live.token, ended.token), live.lease_since, live.lease_until"
    };
    (join) => {
        " LEFT JOIN LATERAL (
              SELECT * FROM redrive.live WHERE live.tenant = tasks.tenant AND live.id = tasks.id LIMIT 1
          ) AS live ON true
          LEFT JOIN LATERAL (
              SELECT * FROM redrive.log
              WHERE live.id IS NULL AND log.tenant = tasks.tenant AND log.id = tasks.id
              ORDER BY log.token DESC
              LIMIT 1
          ) AS ended ON true "
    };
}
pub(crate) use any_task;

/// A task as read from its rows.
#[derive(Debug)]
pub(crate) struct TaskRow {
    pub(crate) task: Task,
    /// The lease, while the task is in flight.
    pub(crate) lease: Option<Lease>,
}

impl TaskRow {
    /// Reads the first columns of `row` as [`live_task`] or [`any_task`].
    pub(crate) fn read(row: &Row) -> Result<Self, PostgresError> {
        let mut cells = Cells::of(row);
        let tenant = cells.parsed(|text| TenantId::try_new(text).ok())?;
        let id = cells.task_id()?;
        let place = |failure: PostgresError| PostgresError::corrupt(format_args!("task {id}"), failure);
        Self::read_rest(&mut cells, tenant, id).map_err(place)
    }

    fn read_rest(cells: &mut Cells<'_>, tenant: TenantId, id: redrive_core::TaskId) -> Result<Self, PostgresError> {
        let dependency = cells.parsed(|text| Dependency::try_new(text).ok())?;
        let task = Task {
            id,
            lane: Lane { tenant, dependency },
            idempotency_key: cells.parsed(|text| IdempotencyKey::try_new(text).ok())?,
            correlation_id: cells.optional_parsed(|text| CorrelationId::try_new(text).ok())?,
            trace_parent: cells.optional_parsed(|text| text.parse().ok())?,
            policy: PolicyRef { id: cells.parsed(|text| PolicyId::try_new(text).ok())?, version: cells.narrow()? },
            status: {
                let code: Option<i16> = cells.get()?;
                let known = code.and_then(status);
                known.ok_or_else(|| cells.wrong(format_args!("status {code:?}")))?
            },
            reason: cells.optional_parsed(Reason::from_name)?,
            attempt_number: cells.narrow()?,
            run: cells.narrow()?,
            attempts_before: cells.narrow()?,
            max_attempts: cells.narrow()?,
            attempt_timeout: Duration::from_millis(cells.unsigned()?),
            created_at: cells.timestamp()?,
            run_started_at: cells.timestamp()?,
            deadline_at: cells.timestamp()?,
            next_attempt_at: cells.optional_timestamp()?,
            ended_at: cells.optional_timestamp()?,
            backoff: cells.optional_micros()?,
            dns_failures: cells.narrow()?,
            cancel_requested: cells.get()?,
            last_error: error(cells)?,
        };
        let token = cells.token()?;
        let lease = match (cells.optional_timestamp()?, cells.optional_timestamp()?) {
            (Some(since), Some(until)) => Some(Lease { token, since, until }),
            (None, None) => None,
            // A task that is set aside is hidden this way; see `ops/set_aside`.
            (None, Some(_)) => return Err(cells.wrong("has no beginning of its lease: it is set aside")),
            (Some(_), None) => return Err(cells.wrong("is missing: the lease has no end")),
        };
        Ok(TaskRow { task, lease })
    }
}

/// Reads a kind and a message.
pub(super) fn error(cells: &mut Cells<'_>) -> Result<Option<LastError>, PostgresError> {
    let kind = cells.optional_parsed(ErrorType::from_name)?;
    let message: Option<String> = cells.get()?;
    Ok(kind.map(|kind| LastError { kind, message: unescape(message.unwrap_or_default()) }))
}
