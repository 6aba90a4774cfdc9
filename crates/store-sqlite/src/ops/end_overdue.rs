//! Ending pending tasks whose deadline has passed.

use redrive_core::{Reason, Timestamp};
use redrive_store::{Overdue, rules};
use rusqlite::{Connection, OptionalExtension};

use crate::codec::{TaskRow, millis, task_columns, time};
use crate::ops::exhaust::exhaust;
use crate::ops::set_aside::{Damaged, readable, set_aside};
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

pub(crate) fn end_overdue(writer: &mut Writer, now: Timestamp, limit: usize) -> Result<Overdue, SqliteError> {
    let next_deadline = next_deadline(&writer.connection)?;
    if next_deadline.is_none_or(|deadline| deadline > now) {
        return Ok(Overdue { ended: Vec::new(), next_deadline });
    }
    let mut ended = Vec::new();
    for mut row in overdue(writer, now, limit)? {
        rules::exhaust(&mut row.task, Reason::Deadline, now);
        exhaust(writer, &row, Reason::Deadline, now)?;
        ended.push(row.task);
    }
    Ok(Overdue { ended, next_deadline: self::next_deadline(&writer.connection)? })
}

/// Scans the index of deadlines from the earliest.
pub(crate) const OVERDUE: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM tasks
     WHERE tasks.status = 2 AND tasks.deadline_at <= ?1
     ORDER BY tasks.deadline_at, tasks.id
     LIMIT ?2"
);

fn overdue(writer: &mut Writer, now: Timestamp, limit: usize) -> Result<Vec<TaskRow>, SqliteError> {
    let Writer { connection, names, .. } = writer;
    let mut select = connection.prepare_cached(OVERDUE)?;
    let mut rows = select.query((millis(now), i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let (mut overdue, mut damaged) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let task = row.get(0)?;
        let read = TaskRow::read(connection, names, row);
        overdue.extend(readable(read, &mut damaged, |problem| Damaged::task(task, problem))?);
    }
    set_aside(connection, &damaged)?;
    Ok(overdue)
}

/// The first entry of the index of deadlines.
pub(crate) const NEXT_DEADLINE: &str =
    "SELECT deadline_at, id FROM tasks WHERE status = 2 ORDER BY deadline_at LIMIT 1";

fn next_deadline(connection: &Connection) -> Result<Option<Timestamp>, SqliteError> {
    let mut select = connection.prepare_cached(NEXT_DEADLINE)?;
    loop {
        match select.query_row([], |row| Ok((time(row, 0)?, row.get(1)?))).optional()? {
            None => return Ok(None),
            Some((Some(deadline), _)) => return Ok(Some(deadline)),
            Some((None, task)) => drop(set_aside(connection, &[Damaged::task(task, "the deadline is none")])?),
        }
    }
}
