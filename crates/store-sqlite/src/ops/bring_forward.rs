//! Making a pending task due now.

use redrive_core::Timestamp;
use redrive_store::rules::{self, BringForward};
use redrive_store::{BringForwardOutcome, TaskKey};

use crate::codec::{millis, sequence};
use crate::ops::find;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

pub(crate) fn bring_forward(
    writer: &mut Writer,
    key: &TaskKey,
    now: Timestamp,
) -> Result<BringForwardOutcome, SqliteError> {
    let Some(found) = find::row(&writer.connection, &mut writer.names, key)? else {
        return Ok(BringForwardOutcome::NotFound);
    };
    let mut task = found.task;
    match rules::bring_forward(&mut task, now) {
        BringForward::Moved => {
            let mut update = writer.connection.prepare_cached("UPDATE tasks SET next_attempt_at = ?2 WHERE id = ?1")?;
            update.execute((sequence(key.id), millis(now)))?;
        }
        BringForward::AlreadyDue => {}
        BringForward::InFlight => return Ok(BringForwardOutcome::InFlight(Box::new(task))),
        BringForward::AlreadyEnded => return Ok(BringForwardOutcome::AlreadyEnded(Box::new(task))),
    }
    Ok(BringForwardOutcome::Done(Box::new(task)))
}
