//! A task's attempt log.

use redrive_core::{Attempt, TaskId, TenantId};

use crate::codec::{self, sequence};
use crate::ops::find;
use crate::readers::Reader;
use crate::sqlite_error::SqliteError;
use redrive_store::TaskKey;

pub(crate) fn attempts(
    reader: &mut Reader,
    tenant: &TenantId,
    id: TaskId,
    after: u32,
    limit: usize,
) -> Result<Option<Vec<Attempt>>, SqliteError> {
    let key = TaskKey { tenant: tenant.clone(), id };
    if find::row(&reader.connection, &mut reader.names, &key)?.is_none() {
        return Ok(None);
    }
    let task = sequence(id);
    let mut select = reader.connection.prepare_cached(
        "SELECT number, started_at, duration_us, outcome, response_status, error_kind, error_message, backoff_us,
                number_in_run
         FROM attempts
         WHERE task = ?1 AND number > ?2
         ORDER BY number, token
         LIMIT ?3",
    )?;
    let mut rows = select.query((task, after, i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let mut attempts = Vec::new();
    while let Some(row) = rows.next()? {
        attempts.push(codec::attempt(row, task)?);
    }
    Ok(Some(attempts))
}
