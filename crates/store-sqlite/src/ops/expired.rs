//! Leases that ran out.

use redrive_core::Timestamp;
use redrive_store::Claimed;

use crate::codec::{self, TASK_COLUMN_COUNT, TaskRow, millis, request_columns, sequence, task_columns};
use crate::failure::Failure;
use crate::readers::Reader;

/// Follows the index of what is in flight, from the lease that ran out first.
pub(crate) const EXPIRED: &str = concat!(
    "SELECT ",
    task_columns!(),
    ", ",
    request_columns!(),
    " FROM tasks JOIN requests ON requests.task = tasks.id
     WHERE tasks.status = 3 AND tasks.lease_until <= ?1
     ORDER BY tasks.lease_until, tasks.id
     LIMIT ?2"
);

pub(crate) fn expired(reader: &mut Reader, now: Timestamp, limit: usize) -> Result<Vec<Claimed>, Failure> {
    let Reader { connection, names } = reader;
    let mut select = connection.prepare_cached(EXPIRED)?;
    let mut rows = select.query((millis(now), i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let mut expired = Vec::new();
    while let Some(row) = rows.next()? {
        let TaskRow { task, lease, .. } = TaskRow::read(connection, names, row)?;
        let request = codec::request(row, TASK_COLUMN_COUNT, sequence(task.id))?;
        expired.push(Claimed { task, request: request.into(), lease });
    }
    Ok(expired)
}
