//! Dead letters whose alert has not been confirmed.

use redrive_core::{Task, Timestamp};
use redrive_store::RaisedAlert;
use rusqlite::Connection;

use crate::codec::{TaskRow, millis, sequence, task_columns};
use crate::ops::set_aside::{Damaged, readable};
use crate::readers::Reader;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

/// Records a pending alert, in the transaction that made the dead letter.
pub(crate) fn note(connection: &Connection, task: i64, ended_at: i64) -> Result<(), SqliteError> {
    let mut insert = connection.prepare_cached("INSERT INTO unannounced (ended_at, task) VALUES (?1, ?2)")?;
    insert.execute((ended_at, task))?;
    Ok(())
}

/// Removes the record of a task that is no dead letter any more.
pub(crate) fn forget(connection: &Connection, task: i64, ended_at: Option<i64>) -> Result<(), SqliteError> {
    let mut delete = connection.prepare_cached("DELETE FROM unannounced WHERE ended_at = ?1 AND task = ?2")?;
    delete.execute((ended_at, task))?;
    Ok(())
}

/// Follows the table's own order, earliest end first.
pub(crate) const UNANNOUNCED: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM unannounced CROSS JOIN tasks ON tasks.id = unannounced.task
     WHERE unannounced.ended_at < ?1 AND tasks.status IN (5, 6)
     ORDER BY unannounced.ended_at, unannounced.task
     LIMIT ?2"
);

pub(crate) fn pending(
    reader: &mut Reader,
    ended_before: Timestamp,
    limit: usize,
    damaged: &mut Vec<Damaged>,
) -> Result<Vec<Task>, SqliteError> {
    let Reader { connection, names } = reader;
    let mut select = connection.prepare_cached(UNANNOUNCED)?;
    let mut rows = select.query((millis(ended_before), i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let mut tasks = Vec::new();
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        let read = TaskRow::read(connection, names, row).map(|row| row.task);
        tasks.extend(readable(read, damaged, |problem| Damaged::task(id, problem))?);
    }
    Ok(tasks)
}

/// Compares with the task's end and run, so that only the alert of this run is confirmed.
pub(crate) const ANNOUNCED: &str = "DELETE FROM unannounced
     WHERE task = ?1
       AND ended_at = (SELECT ended_at FROM tasks WHERE id = ?1 AND tail = ?2 AND tenant = ?3 AND run = ?4)";

pub(crate) fn confirm(writer: &mut Writer, dead_letters: &[RaisedAlert]) -> Result<(), SqliteError> {
    let Writer { connection, names, .. } = writer;
    let mut delete = connection.prepare_cached(ANNOUNCED)?;
    for RaisedAlert { tenant, id, run } in dead_letters {
        if let Some(tenant) = names.tenant_key(connection, tenant)? {
            delete.execute((sequence(*id), id.tail(), tenant, run))?;
        }
    }
    Ok(())
}
