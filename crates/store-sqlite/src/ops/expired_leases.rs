//! Finding expired leases.

use redrive_core::Timestamp;
use redrive_store::ClaimedTask;

use crate::codec::{self, TASK_COLUMN_COUNT, TaskRow, millis, request_columns, task_columns};
use crate::ops::set_aside::{Damaged, readable};
use crate::readers::Reader;
use crate::sqlite_error::SqliteError;

/// Scans the index of tasks in flight, from the lease that expired first.
pub(crate) const EXPIRED: &str = concat!(
    "SELECT ",
    task_columns!(),
    ", ",
    request_columns!(),
    " FROM tasks LEFT JOIN requests ON requests.task = tasks.id
     WHERE tasks.status = 3 AND tasks.lease_until <= ?1
     ORDER BY tasks.lease_until, tasks.id
     LIMIT ?2"
);

pub(crate) fn expired_leases(
    reader: &mut Reader,
    now: Timestamp,
    limit: usize,
    damaged: &mut Vec<Damaged>,
) -> Result<Vec<ClaimedTask>, SqliteError> {
    let Reader { connection, names } = reader;
    let mut select = connection.prepare_cached(EXPIRED)?;
    let mut rows = select.query((millis(now), i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let mut expired = Vec::new();
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        let claimed = TaskRow::read(connection, names, row).and_then(|TaskRow { task, lease, .. }| {
            let request = codec::request(row, TASK_COLUMN_COUNT, id)?.into();
            Ok(ClaimedTask { task, request, lease })
        });
        expired.extend(readable(claimed, damaged, |problem| Damaged::task(id, problem))?);
    }
    Ok(expired)
}
