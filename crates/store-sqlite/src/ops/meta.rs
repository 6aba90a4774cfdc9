//! Single numbers about the store itself.

use rusqlite::{Connection, OptionalExtension};

use crate::sqlite_error::SqliteError;

/// The names of the numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Name {
    /// The task up to which the table `keys` has every key.
    KeysCompleteUpTo,
    /// The task up to which keys are being moved there, if it is a later one.
    KeysMovingUpTo,
    /// The hash before which these have been moved.
    KeysMovedBefore,
    /// The same three numbers for the table `record_keys` and the records.
    RecordKeysCompleteUpTo,
    /// The record up to which keys are being moved there, if it is a later one.
    RecordKeysMovingUpTo,
    /// The hash before which these have been moved.
    RecordKeysMovedBefore,
    /// The newest task that was cleaned away while it was the newest of all, in two parts.
    NewestCleaned,
    /// The random part of its id.
    NewestCleanedTail,
    /// How often the store was checked for being writable.
    Checks,
}

impl Name {
    const fn as_str(self) -> &'static str {
        match self {
            Name::KeysCompleteUpTo => "keys_complete_up_to",
            Name::KeysMovingUpTo => "keys_moving_up_to",
            Name::KeysMovedBefore => "keys_moved_before",
            Name::RecordKeysCompleteUpTo => "record_keys_complete_up_to",
            Name::RecordKeysMovingUpTo => "record_keys_moving_up_to",
            Name::RecordKeysMovedBefore => "record_keys_moved_before",
            Name::NewestCleaned => "newest_cleaned",
            Name::NewestCleanedTail => "newest_cleaned_tail",
            Name::Checks => "checks",
        }
    }
}

pub(crate) fn get(connection: &Connection, name: Name) -> Result<Option<i64>, SqliteError> {
    let mut select = connection.prepare_cached("SELECT value FROM meta WHERE name = ?1")?;
    Ok(select.query_row([name.as_str()], |row| row.get(0)).optional()?)
}

pub(crate) fn set(connection: &Connection, name: Name, value: i64) -> Result<(), SqliteError> {
    let mut upsert = connection.prepare_cached("INSERT OR REPLACE INTO meta (name, value) VALUES (?1, ?2)")?;
    upsert.execute((name.as_str(), value))?;
    Ok(())
}
