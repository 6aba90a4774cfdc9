//! The record with a key.

use redrive_core::RecordName;
use redrive_core::idempotency::RecordKey;
use rusqlite::{Connection, Row};

use crate::codec::{RecordRow, record_column, record_columns};
use crate::keys::KeyHash;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

pub(crate) const RECORD: &str = concat!("SELECT ", record_columns!(), " FROM records WHERE id = ?1");

/// The rows that may be the record with a key.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// The number of the key's operation.
    operation: i64,
    records: Vec<i64>,
}

/// The record with this key; `hash` is the key's.
pub(crate) fn by_key(writer: &mut Writer, key: &RecordKey, hash: KeyHash) -> Result<Option<RecordRow>, SqliteError> {
    match candidates(writer, key, hash)? {
        Some(candidates) => among(&writer.connection, &candidates, &key.name),
        None => Ok(None),
    }
}

/// The rows that may have this key, `None` if there is none.
pub(crate) fn candidates(
    writer: &mut Writer,
    key: &RecordKey,
    hash: KeyHash,
) -> Result<Option<Candidates>, SqliteError> {
    let records = writer.record_keys.candidates(&writer.connection, hash)?;
    if records.is_empty() {
        return Ok(None);
    }
    let operation = writer.names.operation_key(&writer.connection, &key.tenant, &key.operation)?;
    Ok(operation.map(|operation| Candidates { operation, records }))
}

/// The one of these rows that has this name. Fails if that row, or one that may be it, cannot be read.
pub(crate) fn among(
    connection: &Connection,
    candidates: &Candidates,
    name: &RecordName,
) -> Result<Option<RecordRow>, SqliteError> {
    let mut select = connection.prepare_cached(RECORD)?;
    for record in &candidates.records {
        let mut rows = select.query([record])?;
        let Some(row) = rows.next()? else { continue };
        if may_have(row, candidates.operation, name)? {
            return RecordRow::read(row).map(Some);
        }
    }
    Ok(None)
}

/// Whether a row has this key, as far as its operation and name can be read.
fn may_have(row: &Row<'_>, operation: i64, name: &RecordName) -> Result<bool, SqliteError> {
    let is_operation = row.get_ref(record_column::OPERATION)?.as_i64().map_or(true, |found| found == operation);
    let is_name = row.get_ref(record_column::NAME)?.as_str().map_or(true, |found| found == name.as_str());
    Ok(is_operation && is_name)
}

/// The record in this row, whatever its key.
pub(crate) fn by_id(connection: &Connection, record: i64) -> Result<Option<RecordRow>, SqliteError> {
    let mut select = connection.prepare_cached(RECORD)?;
    let mut rows = select.query([record])?;
    rows.next()?.map(RecordRow::read).transpose()
}
