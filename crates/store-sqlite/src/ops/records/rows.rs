//! Writing the rows of records.

use redrive_core::idempotency::{Record, RecordKey};
use rusqlite::{CachedStatement, Connection};

use crate::codec::{EncodedBody, millis, state_code, whole_millis};
use crate::keys::KeyHash;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

/// Stores a new record and its key. A new record has no result.
pub(super) fn insert(writer: &mut Writer, key: &RecordKey, hash: KeyHash, record: &Record) -> Result<(), SqliteError> {
    let Writer { connection, names, record_keys, .. } = writer;
    let operation = names.operation_key_or_new(connection, &key.tenant, &key.operation)?;
    let mut insert = connection.prepare_cached(
        "INSERT OR FAIL INTO records (
             operation, name, state, expires_at, updated_at, started_at, lease_until, retention_ms, epoch, execution,
             request_hash, resource_kind, resource_id, response_status, response_headers, body
         ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    )?;
    insert.raw_bind_parameter(1, operation)?;
    insert.raw_bind_parameter(2, key.name.as_str())?;
    bind(&mut insert, 3, record, None)?;
    insert.raw_execute()?;
    record_keys.add(connection, hash, connection.last_insert_rowid())
}

/// Overwrites a record; `headers` are those of its response, as JSON.
pub(super) fn update(
    connection: &Connection,
    id: i64,
    record: &Record,
    headers: Option<&str>,
) -> Result<(), SqliteError> {
    let mut update = connection.prepare_cached(
        "UPDATE records SET
             state = ?2, expires_at = ?3, updated_at = ?4, started_at = ?5, lease_until = ?6, retention_ms = ?7,
             epoch = ?8, execution = ?9, request_hash = ?10, resource_kind = ?11, resource_id = ?12,
             response_status = ?13, response_headers = ?14, body = ?15
         WHERE id = ?1",
    )?;
    update.raw_bind_parameter(1, id)?;
    bind(&mut update, 2, record, headers)?;
    update.raw_execute()?;
    Ok(())
}

/// Binds the columns from `state` on, in the order of the table, to the parameters from `first` on.
fn bind(
    statement: &mut CachedStatement<'_>,
    first: usize,
    record: &Record,
    headers: Option<&str>,
) -> rusqlite::Result<()> {
    let response = record.completion.response.as_ref();
    let resource = record.completion.resource.as_ref();
    statement.raw_bind_parameter(first, state_code(record.state))?;
    statement.raw_bind_parameter(first + 1, millis(record.expires_at))?;
    statement.raw_bind_parameter(first + 2, millis(record.updated_at))?;
    statement.raw_bind_parameter(first + 3, millis(record.started_at))?;
    statement.raw_bind_parameter(first + 4, millis(record.lease_until))?;
    statement.raw_bind_parameter(first + 5, whole_millis(record.retention))?;
    statement.raw_bind_parameter(first + 6, record.owner.epoch.0)?;
    statement.raw_bind_parameter(first + 7, record.owner.execution.as_u128().to_be_bytes())?;
    statement.raw_bind_parameter(first + 8, record.request_hash.0)?;
    statement.raw_bind_parameter(first + 9, resource.map(|resource| resource.kind()))?;
    statement.raw_bind_parameter(first + 10, resource.map(|resource| resource.id()))?;
    statement.raw_bind_parameter(first + 11, response.map(|response| response.status))?;
    statement.raw_bind_parameter(first + 12, headers)?;
    statement.raw_bind_parameter(first + 13, response.map(|response| EncodedBody(&response.body)))
}
