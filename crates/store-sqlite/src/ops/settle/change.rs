//! Settling any attempt: the outcome depends on the task's row.

use redrive_core::attempt::LastError;
use redrive_core::{Class, Reason, Status};
use redrive_store::rules;
use rusqlite::{Connection, OptionalExtension};

use super::{EncodedSettlement, End};
use crate::codec::{micros, millis, sequence, status_code};
use crate::sqlite_error::SqliteError;

/// The columns that a settlement needs of a task that is in flight under its token.
pub(super) struct Held {
    pub(super) version: i64,
    attempt_number: u32,
    attempts_before: u32,
    next_attempt_at: Option<i64>,
    backoff_us: Option<i64>,
    dns_failures: u32,
    cancel_requested: bool,
}

/// The task, `None` if the lease is lost.
pub(super) fn held(connection: &Connection, tenant: i64, end: &EncodedSettlement) -> Result<Option<Held>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT policy, attempt_number, attempts_before, next_attempt_at, backoff_us, dns_failures, cancel_requested
         FROM tasks
         WHERE id = ?1 AND tail = ?2 AND tenant = ?3 AND status = 3 AND token = ?4",
    )?;
    let found = select.query_row((sequence(end.id), end.id.tail(), tenant, end.token.0), |row| {
        Ok(Held {
            version: row.get(0)?,
            attempt_number: row.get(1)?,
            attempts_before: row.get(2)?,
            next_attempt_at: row.get(3)?,
            backoff_us: row.get(4)?,
            dns_failures: row.get(5)?,
            cancel_requested: row.get(6)?,
        })
    });
    Ok(found.optional()?)
}

/// The changes of the row.
pub(super) struct Change<'a> {
    pub(super) status: Status,
    reason: Option<Reason>,
    attempt_number: u32,
    next_attempt_at: Option<i64>,
    ended_at: Option<i64>,
    backoff_us: Option<i64>,
    class: Class,
    dns_failures: u32,
    /// The new error. `None` keeps the previous one: a success does not delete it.
    error: Option<&'a LastError>,
}

impl<'a> Change<'a> {
    pub(super) fn of(held: &Held, end: &'a EncodedSettlement) -> Self {
        let (status, reason) = match &end.end {
            End::RetryAt { .. } => (Status::Pending, None),
            End::As { status, reason, .. } => (*status, *reason),
        };
        let (next_attempt_at, backoff_us, dns_failures) = match &end.end {
            End::RetryAt { at, backoff, dns_failures } => (Some(millis(*at)), backoff.map(micros), *dns_failures),
            End::As { .. } => (held.next_attempt_at, held.backoff_us, held.dns_failures),
        };
        let (status, reason) = rules::settled_as(status, reason, held.cancel_requested);
        let attempt_number = rules::attempts_after(held.attempt_number, end.attempt.is_some());
        Change {
            status,
            reason,
            attempt_number,
            next_attempt_at: next_attempt_at.filter(|_| !status.is_ended()),
            ended_at: status.is_ended().then(|| millis(end.at)),
            backoff_us,
            class: rules::class_after(attempt_number, held.attempts_before),
            dns_failures,
            error: end.attempt.as_ref().and_then(|attempt| attempt.error.as_ref()),
        }
    }
}

pub(super) fn update(connection: &Connection, task: i64, change: &Change<'_>) -> Result<(), SqliteError> {
    let mut update = connection.prepare_cached(
        "UPDATE tasks SET
             status = ?2, reason = ?3, attempt_number = ?4, next_attempt_at = ?5, ended_at = ?6, backoff_us = ?7,
             class = ?8, dns_failures = ?9,
             error_kind = coalesce(?10, error_kind), error_message = coalesce(?11, error_message)
         WHERE id = ?1",
    )?;
    update.execute((
        task,
        status_code(change.status),
        change.reason.map(Reason::as_str),
        change.attempt_number,
        change.next_attempt_at,
        change.ended_at,
        change.backoff_us,
        change.class.code(),
        change.dns_failures,
        change.error.map(|error| error.kind.as_str()),
        change.error.map(|error| error.message.as_str()),
    ))?;
    Ok(())
}
