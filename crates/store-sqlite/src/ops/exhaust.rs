//! Ending a pending task as EXHAUSTED, without an attempt: a dead letter with a pending alert.

use redrive_core::{Reason, Status, Timestamp};

use crate::codec::{TaskRow, millis, sequence};
use crate::ops::alerts;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

pub(crate) fn exhaust(writer: &mut Writer, row: &TaskRow, reason: Reason, now: Timestamp) -> Result<(), SqliteError> {
    let (id, now) = (sequence(row.task.id), millis(now));
    let mut update = writer.connection.prepare_cached(
        "UPDATE tasks SET status = 6, reason = ?2, next_attempt_at = NULL, ended_at = ?3 WHERE id = ?1",
    )?;
    update.execute((id, reason.as_str(), now))?;
    alerts::note(&writer.connection, id, now)?;
    writer.counters.moved(row.tenant, row.version, Status::Pending, Status::Exhausted);
    Ok(())
}
