//! Cancelling a task.

use redrive_core::{Reason, Status, Timestamp};
use redrive_store::rules::{self, Cancel};
use redrive_store::{CancelOutcome, TaskKey};

use crate::codec::{millis, sequence};
use crate::ops::find;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

pub(crate) fn cancel(writer: &mut Writer, key: &TaskKey, now: Timestamp) -> Result<CancelOutcome, SqliteError> {
    let Some(found) = find::row(&writer.connection, &mut writer.names, key)? else {
        return Ok(CancelOutcome::NotFound);
    };
    let mut task = found.task;
    match rules::cancel(&mut task, now) {
        Cancel::Ended => {
            let mut update = writer.connection.prepare_cached(
                "UPDATE tasks SET status = 7, reason = ?2, ended_at = ?3, next_attempt_at = NULL WHERE id = ?1",
            )?;
            update.execute((sequence(key.id), Reason::Cancelled.as_str(), millis(now)))?;
            writer.counters.moved(found.tenant, found.version, Status::Pending, Status::Cancelled);
        }
        Cancel::Requested => {
            let mut update = writer.connection.prepare_cached("UPDATE tasks SET cancel_requested = 1 WHERE id = ?1")?;
            update.execute([sequence(key.id)])?;
        }
        Cancel::AlreadyEnded => return Ok(CancelOutcome::AlreadyEnded(Box::new(task))),
    }
    Ok(CancelOutcome::Done(Box::new(task)))
}
