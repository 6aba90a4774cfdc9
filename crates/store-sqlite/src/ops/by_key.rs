//! The task that an idempotency key belongs to.
//!
//! The writer answers, because only the writer has the newest keys.

use redrive_core::request::Fingerprint;
use redrive_core::{IdempotencyKey, Task, TaskId, TenantId};
use rusqlite::Row;

use crate::codec::{TASK_COLUMN_COUNT, TaskRow, task_columns};
use crate::keys::KeyHash;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

/// The owner of a key.
#[derive(Debug)]
pub(crate) enum Owner {
    /// This task, whose request had this fingerprint.
    Task(Box<Task>, Fingerprint),
    /// A task that cannot be read, and why.
    Damaged(TaskId, SqliteError),
}

/// The owner of this key; `hash` is the key's.
pub(crate) fn by_key(
    writer: &mut Writer,
    tenant: &TenantId,
    key: &IdempotencyKey,
    hash: KeyHash,
) -> Result<Option<Owner>, SqliteError> {
    let candidates = writer.keys.candidates(&writer.connection, hash)?;
    if candidates.is_empty() {
        return Ok(None);
    }
    // One of the candidates may be a task of this transaction.
    writer.write_rows()?;
    let Writer { connection, names, .. } = writer;
    let mut select = connection.prepare_cached(concat!(
        "SELECT ",
        task_columns!(),
        ", requests.fingerprint
         FROM tasks LEFT JOIN requests ON requests.task = tasks.id
         WHERE tasks.id = ?1"
    ))?;
    for candidate in candidates {
        let mut rows = select.query([candidate])?;
        let Some(row) = rows.next()? else { continue };
        let read = TaskRow::read(connection, names, row).and_then(|owner| Ok((owner.task, fingerprint(row)?)));
        match read {
            Ok((owner, fingerprint)) if owner.lane.tenant == *tenant && owner.idempotency_key == *key => {
                return Ok(Some(Owner::Task(Box::new(owner), fingerprint)));
            }
            Ok(_) => {}
            Err(failure) if failure.is_about_a_value() => {
                let tenant = names.tenant_key(connection, tenant)?;
                if may_own(row, tenant, key)? {
                    let id = TaskId::from_parts(candidate.cast_unsigned(), row.get(1).unwrap_or_default());
                    return Ok(Some(Owner::Damaged(id, failure)));
                }
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(None)
}

/// Whether an unreadable row may be the key's owner: its tenant and key match, or are unreadable themselves.
fn may_own(row: &Row<'_>, tenant: Option<i64>, key: &IdempotencyKey) -> Result<bool, SqliteError> {
    const TENANT: usize = 2;
    const KEY: usize = 21;
    let is_tenant = row.get_ref(TENANT)?.as_i64().map_or(true, |found| Some(found) == tenant);
    let is_key = row.get_ref(KEY)?.as_str().map_or(true, |found| found == key.as_str());
    Ok(is_tenant && is_key)
}

fn fingerprint(row: &Row<'_>) -> Result<Fingerprint, SqliteError> {
    let unreadable = |what: &dyn std::fmt::Display| SqliteError::corrupt("the fingerprint of a request", what);
    let bytes = row.get_ref(TASK_COLUMN_COUNT)?.as_blob().map_err(|error| unreadable(&error))?;
    Fingerprint::from_bytes(bytes).ok_or_else(|| unreadable(&format_args!("{} bytes", bytes.len())))
}
