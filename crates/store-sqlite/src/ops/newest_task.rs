//! The newest task id ever stored here.

use redrive_core::TaskId;
use rusqlite::{Connection, OptionalExtension};

use crate::ops::meta::{self, Name};
use crate::readers::Reader;
use crate::sqlite_error::SqliteError;

pub(crate) fn newest_task(reader: &mut Reader) -> Result<Option<TaskId>, SqliteError> {
    let kept = newest_kept(&reader.connection)?;
    let cleaned = meta::get(&reader.connection, Name::NewestCleaned)?;
    let tail = meta::get(&reader.connection, Name::NewestCleanedTail)?;
    let newest = kept.max(cleaned.zip(tail));
    Ok(newest.map(|(task, tail)| TaskId::from_parts(task.cast_unsigned(), tail.cast_unsigned())))
}

/// The newest task that is still stored: the two parts of its id.
pub(crate) fn newest_kept(connection: &Connection) -> Result<Option<(i64, i64)>, SqliteError> {
    let mut select = connection.prepare_cached("SELECT id, tail FROM tasks ORDER BY id DESC LIMIT 1")?;
    // The rest of its id may be unreadable: only the first part must not be used again.
    Ok(select.query_row([], |row| Ok((row.get(0)?, row.get(1).unwrap_or_default()))).optional()?)
}
