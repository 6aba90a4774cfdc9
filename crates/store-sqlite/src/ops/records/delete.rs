//! Deleting a record for an operator.

use redrive_core::Timestamp;
use redrive_core::idempotency::{self, RecordKey};
use redrive_store::{DeletedRecord, SeenRecord};

use super::{find, rows};
use crate::keys::KeyHash;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

pub(crate) fn delete(
    writer: &mut Writer,
    key: &RecordKey,
    hash: KeyHash,
    seen: Option<SeenRecord>,
    now: Timestamp,
) -> Result<DeletedRecord, SqliteError> {
    let stored = find::by_key(writer, key, hash)?;
    let Some(stored) = stored.filter(|row| row.record.is_present(now)) else { return Ok(DeletedRecord::Absent) };
    if seen.is_some_and(|seen| seen != SeenRecord::of(&stored.record)) {
        return Ok(DeletedRecord::Changed(Box::new(stored.record)));
    }
    rows::update(&writer.connection, stored.id, &idempotency::delete(&stored.record, now), None)?;
    Ok(DeletedRecord::Done(Box::new(stored.record)))
}
