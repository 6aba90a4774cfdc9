//! One task by its id, for its tenant only.

use redrive_core::{TaskId, TenantId};
use redrive_store::{TaskDetail, TaskKey};
use rusqlite::{Connection, Row};

use crate::codec::{self, TASK_COLUMN_COUNT, TaskRow, request_columns, sequence, task_columns};
use crate::names::Names;
use crate::readers::Reader;
use crate::sqlite_error::SqliteError;

/// The number of columns of a request, which is where those of an answer start.
const REQUEST_COLUMN_COUNT: usize = 6;

/// The task's row, if the task exists and belongs to this tenant.
pub(crate) fn row(connection: &Connection, names: &mut Names, key: &TaskKey) -> Result<Option<TaskRow>, SqliteError> {
    let mut select = connection.prepare_cached(concat!("SELECT ", task_columns!(), " FROM tasks WHERE id = ?1"))?;
    let mut rows = select.query([sequence(key.id)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let found = TaskRow::read(connection, names, row)?;
    Ok(Some(found).filter(|found| found.task.id == key.id && found.task.lane.tenant == key.tenant))
}

/// The task with its request and its answer.
pub(crate) fn task(reader: &mut Reader, tenant: &TenantId, id: TaskId) -> Result<Option<TaskDetail>, SqliteError> {
    let found = detail(&reader.connection, &mut reader.names, sequence(id))?;
    Ok(found.filter(|found| found.task.id == id && found.task.lane.tenant == *tenant))
}

/// The task in this row, whatever its tenant.
pub(crate) fn detail(connection: &Connection, names: &mut Names, task: i64) -> Result<Option<TaskDetail>, SqliteError> {
    let mut select = connection.prepare_cached(concat!(
        "SELECT ",
        task_columns!(),
        ", ",
        request_columns!(),
        ", answers.status, answers.headers, answers.body, answers.truncated
         FROM tasks
         LEFT JOIN requests ON requests.task = tasks.id
         LEFT JOIN answers ON answers.task = tasks.id
         WHERE tasks.id = ?1"
    ))?;
    let mut rows = select.query([task])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    read_detail(connection, names, row, task).map(Some)
}

fn read_detail(
    connection: &Connection,
    names: &mut Names,
    row: &Row<'_>,
    task: i64,
) -> Result<TaskDetail, SqliteError> {
    Ok(TaskDetail {
        task: TaskRow::read(connection, names, row)?.task,
        request: codec::request(row, TASK_COLUMN_COUNT, task)?.into(),
        answer: codec::answer(row, TASK_COLUMN_COUNT + REQUEST_COLUMN_COUNT, task)?,
    })
}
