//! The rows of new tasks.

use std::sync::LazyLock;

use redrive_core::{CorrelationId, Status};
use redrive_store::Lease;
use rusqlite::Connection;

use super::EncodedTask;
use crate::bulk::Bulk;
use crate::codec::{EncodedBody, micros, millis, sequence, status_code, whole_millis};
use crate::names::LaneKey;
use crate::ops::blobs::{self, Part};
use crate::sqlite_error::SqliteError;
use crate::writer::OneOf;

/// A task to store, with the numbers that stand for its names.
#[derive(Debug)]
pub(crate) struct Row {
    pub(super) prepared: OneOf<EncodedTask>,
    pub(super) lane: LaneKey,
    pub(super) version: i64,
    pub(super) lease: Option<Lease>,
}

/// Writes the rows, table by table, in the order of the tables.
pub(crate) fn write(connection: &Connection, rows: &mut [Row]) -> Result<(), SqliteError> {
    rows.sort_unstable_by_key(|row| row.prepared.new.task.id);
    insert_tasks(connection, rows)?;
    insert_requests(connection, rows)
}

fn insert_tasks(connection: &Connection, rows: &[Row]) -> Result<(), SqliteError> {
    static INSERT: LazyLock<Bulk> = LazyLock::new(|| {
        Bulk::new(
            "INSERT OR FAIL INTO tasks (
                 id, tail, tenant, lane, policy, status, attempt_number, max_attempts, attempt_timeout_ms, created_at,
                 deadline_at, next_attempt_at, token, lease_since, lease_until, cancel_requested, backoff_us,
                 idempotency_key, correlation_id, trace_parent
             )",
            20,
        )
    });
    INSERT.insert(connection, rows, |values, Row { prepared, lane, version, lease }| {
        let task = &prepared.new.task;
        let status = if lease.is_some() { Status::InFlight } else { Status::Pending };
        let attempts = u32::from(lease.is_some());
        // A pending task has a placeholder for its lease, so that its row does not grow when it is claimed (see
        // `status_code`).
        let place = task.created_at;
        let (since, until) = lease.map_or((place, place), |lease| (lease.since, lease.until));
        values.put(sequence(task.id))?;
        values.put(task.id.tail())?;
        values.put(lane.tenant)?;
        values.put(lane.lane)?;
        values.put(version)?;
        values.put(status_code(status))?;
        values.put(task.attempt_number + attempts)?;
        values.put(task.max_attempts)?;
        values.put(whole_millis(task.attempt_timeout))?;
        values.put(millis(task.created_at))?;
        values.put(millis(task.deadline_at))?;
        values.put(millis(task.next_attempt_at.unwrap_or(task.created_at)))?;
        values.put(attempts)?;
        values.put(millis(since))?;
        values.put(millis(until))?;
        values.put(false)?;
        values.put(task.backoff.map(micros))?;
        values.put(task.idempotency_key.as_str())?;
        values.put(task.correlation_id.as_ref().map(CorrelationId::as_str))?;
        values.put(task.trace_parent.map(|parent| parent.to_string()))
    })
}

fn insert_requests(connection: &Connection, rows: &[Row]) -> Result<(), SqliteError> {
    static INSERT: LazyLock<Bulk> = LazyLock::new(|| {
        Bulk::new(
            "INSERT OR FAIL INTO requests (task, target_url, method, headers, overrides, labels, fingerprint, body)",
            8,
        )
    });
    INSERT.insert(connection, rows, |values, Row { prepared, .. }| {
        let EncodedTask { new, request, .. } = &**prepared;
        values.put(sequence(new.task.id))?;
        values.put(&new.request.target_url)?;
        values.put(&new.request.method)?;
        values.put(&request.headers)?;
        values.put(&request.overrides)?;
        values.put(&request.labels)?;
        values.put(new.fingerprint.to_bytes())?;
        values.put(EncodedBody(&new.request.body))
    })?;
    for Row { prepared, .. } in rows {
        if let Some(body) = prepared.new.request.body.stored() {
            blobs::note_use(connection, sequence(prepared.new.task.id), Part::Request, body)?;
        }
    }
    Ok(())
}
