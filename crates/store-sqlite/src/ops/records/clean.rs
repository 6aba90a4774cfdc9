//! Removing records that have expired.

use std::collections::BTreeSet;

use redrive_core::Timestamp;
use rusqlite::Row;

use crate::codec::millis;
use crate::keys::KeyHash;
use crate::ops::set_aside;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

pub(crate) const EXPIRED: &str = "SELECT records.id, tenants.name, operations.name, records.name, records.operation
     FROM records
     LEFT JOIN operations ON operations.id = records.operation
     LEFT JOIN tenants ON tenants.id = operations.tenant
     WHERE records.expires_at <= ?1
     ORDER BY records.expires_at
     LIMIT ?2";

/// Removes an operation that has no record left, or there would be more and more of them.
pub(crate) const REMOVE_OPERATION: &str = "DELETE FROM operations
     WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM records WHERE records.operation = ?1)";

pub(crate) fn clean(writer: &mut Writer, now: Timestamp, limit: usize) -> Result<usize, SqliteError> {
    let mut expired = find(writer, now, limit)?;
    // In the order of the index of keys, so that neighbours share its pages.
    expired.sort_unstable_by_key(|record| (record.key, record.id));
    let Writer { connection, names, record_keys, .. } = writer;
    let mut delete = connection.prepare_cached("DELETE FROM records WHERE id = ?1")?;
    for Expired { id, key, .. } in &expired {
        delete.execute([id])?;
        if let Some(key) = key {
            record_keys.remove(connection, *key, *id)?;
        }
        set_aside::forget_record(connection, *id)?;
    }
    let operations: BTreeSet<i64> = expired.iter().filter_map(|record| record.operation).collect();
    let mut remove = connection.prepare_cached(REMOVE_OPERATION)?;
    for operation in operations {
        if remove.execute([operation])? > 0 {
            names.forget_operations();
        }
    }
    Ok(expired.len())
}

/// A record to remove.
struct Expired {
    id: i64,
    /// The hash of its key. A record whose key cannot be read is removed all the same: no call looks that key up.
    key: Option<KeyHash>,
    operation: Option<i64>,
}

impl Expired {
    fn read(row: &Row<'_>) -> Result<Self, SqliteError> {
        let part = |column| Ok::<_, SqliteError>(row.get_ref(column)?.as_str().ok());
        let key = match (part(1)?, part(2)?, part(3)?) {
            (Some(tenant), Some(operation), Some(name)) => Some(KeyHash::of_parts(&[tenant, operation, name])),
            _ => None,
        };
        Ok(Expired { id: row.get(0)?, key, operation: row.get_ref(4)?.as_i64().ok() })
    }
}

fn find(writer: &Writer, now: Timestamp, limit: usize) -> Result<Vec<Expired>, SqliteError> {
    let mut select = writer.connection.prepare_cached(EXPIRED)?;
    let mut rows = select.query((millis(now), i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let mut expired = Vec::new();
    while let Some(row) = rows.next()? {
        expired.push(Expired::read(row)?);
    }
    Ok(expired)
}
