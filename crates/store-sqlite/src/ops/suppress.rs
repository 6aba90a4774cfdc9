//! Ending a pending task because a retry budget is spent.

use redrive_core::{Reason, Timestamp};
use redrive_store::{SuppressOutcome, Suppression, TaskKey, rules};

use crate::ops::exhaust::exhaust;
use crate::ops::find;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

pub(crate) fn suppress(
    writer: &mut Writer,
    suppression: &Suppression,
    now: Timestamp,
) -> Result<SuppressOutcome, SqliteError> {
    let Suppression { tenant, id, attempt_number } = suppression.clone();
    let Some(mut row) = find::row(&writer.connection, &mut writer.names, &TaskKey { tenant, id })? else {
        return Ok(SuppressOutcome::NotFound);
    };
    if !rules::suppress(&mut row.task, attempt_number, now) {
        return Ok(SuppressOutcome::NotWaiting(Box::new(row.task)));
    }
    exhaust(writer, &row, Reason::Budget, now)?;
    Ok(SuppressOutcome::Done(Box::new(row.task)))
}
