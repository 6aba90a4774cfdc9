//! Records of the objects that hold bodies, and their condemnation.
//!
//! There is one writer, so a submit and a condemnation of the same blob exclude each other.

use redrive_core::{BodyHash, BodyRef, TenantId, Timestamp};
use redrive_store::{Blob, Condemned};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::codec::{body_ref, millis};
use crate::names::Names;
use crate::ops::set_aside::{Damaged, readable, set_aside};
use crate::readers::Reader;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

/// A part of a task that may refer to a blob.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    Request,
    Answer,
}

impl Part {
    const fn name(self) -> &'static str {
        match self {
            Part::Request => "request",
            Part::Answer => "answer",
        }
    }
}

/// Records that a part of a task refers to a blob.
pub(crate) fn note_use(connection: &Connection, task: i64, part: Part, body: &BodyRef) -> Result<(), SqliteError> {
    let mut insert =
        connection.prepare_cached("INSERT OR REPLACE INTO body_uses (task, part, body) VALUES (?1, ?2, ?3)")?;
    insert.execute((task, part.name(), body.to_record()))?;
    Ok(())
}

/// Removes the record that a part of a task refers to a blob, if there is one.
pub(crate) fn forget_use(connection: &Connection, task: i64, part: Part) -> Result<(), SqliteError> {
    let mut delete = connection.prepare_cached("DELETE FROM body_uses WHERE task = ?1 AND part = ?2")?;
    delete.execute((task, part.name()))?;
    Ok(())
}

/// Removes all such records of a task.
pub(crate) fn forget_uses(connection: &Connection, task: i64) -> Result<(), SqliteError> {
    connection.prepare_cached("DELETE FROM body_uses WHERE task = ?1")?.execute([task])?;
    Ok(())
}

/// Whether a task or an idempotency record may refer to this blob.
pub(crate) fn is_kept(connection: &Connection, tenant: i64, body: &BodyRef) -> Result<bool, SqliteError> {
    let mut select =
        connection.prepare_cached("SELECT 1 FROM blobs WHERE tenant = ?1 AND body = ?2 AND NOT condemned")?;
    Ok(select.exists((tenant, body.to_record()))?)
}

pub(crate) fn adopt(
    writer: &mut Writer,
    tenant: &TenantId,
    fresh: BodyRef,
    now: Timestamp,
) -> Result<BodyRef, SqliteError> {
    let tenant = writer.names.tenant_key_or_new(&writer.connection, tenant)?;
    let body = kept(&writer.connection, tenant, fresh.hash)?.unwrap_or(fresh);
    let mut insert = writer.connection.prepare_cached(
        "INSERT INTO blobs (tenant, body, adopted_at) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET adopted_at = max(adopted_at, excluded.adopted_at)",
    )?;
    insert.execute((tenant, body.to_record(), millis(now)))?;
    Ok(body)
}

pub(crate) fn blob(reader: &mut Reader, tenant: &TenantId, hash: BodyHash) -> Result<Option<BodyRef>, SqliteError> {
    let Reader { connection, names } = reader;
    match names.tenant_key(connection, tenant)? {
        Some(tenant) => kept(connection, tenant, hash),
        None => Ok(None),
    }
}

/// All copies of one content: a record starts with the hash and a blank, and only the rest differs between copies.
pub(crate) const KEPT: &str = "SELECT body FROM blobs
     WHERE tenant = ?1 AND body > ?2 || ' ' AND body < ?2 || '!' AND NOT condemned
     LIMIT 1";

fn kept(connection: &Connection, tenant: i64, hash: BodyHash) -> Result<Option<BodyRef>, SqliteError> {
    let mut select = connection.prepare_cached(KEPT)?;
    let found = select.query_row((tenant, hash.to_string()), |row| body_ref(row.get_ref(0)?.as_str()?, 0)).optional();
    match found.map_err(SqliteError::from) {
        // Another object is recorded for the same content then.
        Err(failure) if failure.is_about_a_value() => Ok(None),
        found => found,
    }
}

/// Follows the table's own order.
pub(crate) const LOOK: &str = "SELECT blobs.tenant, blobs.body, NOT NOT blobs.condemned,
            NOT blobs.condemned AND blobs.adopted_at < ?3
                AND NOT EXISTS (SELECT 1 FROM body_uses WHERE body_uses.body = blobs.body)
                AND NOT EXISTS (
                    SELECT 1 FROM records WHERE typeof(records.body) = 'text' AND records.body = blobs.body
                )
     FROM blobs
     WHERE (blobs.tenant, blobs.body) > (?1, ?2)
     ORDER BY blobs.tenant, blobs.body
     LIMIT ?4 OFFSET ?5";

pub(crate) fn condemn(
    writer: &mut Writer,
    adopted_before: Timestamp,
    after: Option<&Blob>,
    limit: usize,
) -> Result<Condemned, SqliteError> {
    let Writer { connection, names, .. } = writer;
    let (after_tenant, after_body) = match after {
        // Tenants are never deleted, so an unknown one has nothing behind it.
        Some(after) => match names.tenant_key(connection, &after.tenant)? {
            Some(tenant) => (tenant, after.body.to_record()),
            None => return Ok(Condemned::default()),
        },
        None => (0, String::new()),
    };
    // A step that looks at nothing would repeat endlessly.
    let limit = limit.max(1);
    let mut select = connection.prepare_cached(LOOK)?;
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let (mut condemned, mut newly, mut damaged) = (Condemned::default(), Vec::new(), Vec::new());
    let (mut last, mut passed_over) = (None, 0);
    let is_full = loop {
        let mut looked_at = 0;
        let mut rows = select.query((after_tenant, &after_body, millis(adopted_before), most, passed_over))?;
        while let Some(row) = rows.next()? {
            looked_at += 1;
            let (is_condemned, is_unused): (bool, bool) = (row.get(2)?, row.get(3)?);
            let read = read(connection, names, row);
            let Some(blob) = readable(read, &mut damaged, |problem| Damaged::blob(&shown(row), problem))? else {
                continue;
            };
            if is_condemned || is_unused {
                condemned.blobs.push(blob.clone());
            }
            if is_unused {
                newly.push((row.get::<_, i64>(0)?, blob.body.to_record()));
            }
            last = Some(blob);
        }
        drop(rows);
        // The place to continue from must be a blob that can be read.
        if looked_at < limit || last.is_some() {
            break looked_at == limit;
        }
        passed_over += most;
    };
    set_aside(connection, &damaged)?;
    let mut update = connection.prepare_cached("UPDATE blobs SET condemned = 1 WHERE tenant = ?1 AND body = ?2")?;
    for blob in newly {
        update.execute(blob)?;
    }
    condemned.next = last.filter(|_| is_full);
    Ok(condemned)
}

/// Reads tenant and record.
fn read(connection: &Connection, names: &mut Names, row: &Row<'_>) -> Result<Blob, SqliteError> {
    let record =
        row.get_ref(1)?.as_str().map_err(|error| SqliteError::corrupt(format_args!("blob {:?}", shown(row)), error))?;
    Ok(Blob { body: read_record(record)?, tenant: names.tenant(connection, row.get(0)?)? })
}

/// The record of a blob as text, whatever its type.
fn shown(row: &Row<'_>) -> String {
    let bytes = row.get_ref(1).map(|cell| cell.as_bytes_or_null().ok().flatten().unwrap_or_default());
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

/// The blob that this record names.
pub(crate) fn read_record(record: &str) -> Result<BodyRef, SqliteError> {
    body_ref(record, 1).map_err(|error| SqliteError::corrupt(format_args!("blob {record:?}"), error))
}

pub(crate) fn forget(writer: &mut Writer, blobs: &[Blob]) -> Result<(), SqliteError> {
    let Writer { connection, names, .. } = writer;
    let mut delete = connection.prepare_cached("DELETE FROM blobs WHERE tenant = ?1 AND body = ?2 AND condemned")?;
    for blob in blobs {
        if let Some(tenant) = names.tenant_key(connection, &blob.tenant)? {
            delete.execute((tenant, blob.body.to_record()))?;
        }
    }
    Ok(())
}
