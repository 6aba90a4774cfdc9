//! The task that an idempotency key belongs to.
//!
//! The writer answers, because only the writer knows the newest keys.

use redrive_core::request::Fingerprint;
use redrive_core::{IdempotencyKey, Task, TenantId};

use crate::codec::{TASK_COLUMN_COUNT, TaskRow, task_columns};
use crate::failure::Failure;
use crate::keys::KeyHash;
use crate::writer::Writer;

/// The task with this key and what made its request; `hash` is the key's.
pub(crate) fn by_key(
    writer: &mut Writer,
    tenant: &TenantId,
    key: &IdempotencyKey,
    hash: KeyHash,
) -> Result<Option<(Task, Fingerprint)>, Failure> {
    let candidates = writer.keys.candidates(&writer.connection, hash)?;
    if candidates.is_empty() {
        return Ok(None);
    }
    // One of them may be of this transaction.
    writer.write_rows()?;
    let Writer { connection, names, .. } = writer;
    let mut select = connection.prepare_cached(concat!(
        "SELECT ",
        task_columns!(),
        ", requests.fingerprint
         FROM tasks JOIN requests ON requests.task = tasks.id
         WHERE tasks.id = ?1"
    ))?;
    for candidate in candidates {
        let mut rows = select.query([candidate])?;
        let Some(row) = rows.next()? else { continue };
        let owner = TaskRow::read(connection, names, row)?.task;
        if owner.lane.tenant == *tenant && owner.idempotency_key == *key {
            return Ok(Some((owner, Fingerprint(row.get(TASK_COLUMN_COUNT)?))));
        }
    }
    Ok(None)
}
