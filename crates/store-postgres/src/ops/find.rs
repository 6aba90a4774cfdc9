//! One task by its id, for its tenant only.

use redrive_core::{Task, TaskId, TenantId};
use redrive_store::TaskDetail;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::{
    Cells, LIVE_TASK_COLUMN_COUNT, TaskRow, Uuid, answer, any_task, live_task, request, request_columns,
};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// The columns that [`read_detail`] expects.
macro_rules! detail_columns {
    () => {
        concat!(
            any_task!(),
            ", ",
            request_columns!(),
            ", ended.answer_status, ended.answer_headers, ended.answer_body_ref, ended.answer_body, ended.answer_truncated"
        )
    };
}
pub(crate) use detail_columns;

const TASK: &str = concat!(
    "SELECT ",
    detail_columns!(),
    " FROM redrive.tasks",
    any_task!(join),
    "WHERE tasks.tenant = $1 AND tasks.id = $2"
);

/// The task with its request and its answer.
pub(crate) async fn task(
    connection: &Connection,
    tenant: &TenantId,
    id: TaskId,
) -> Result<Option<TaskDetail>, PostgresError> {
    let rows = connection.query(TASK, &[(&tenant.as_str(), Type::TEXT), (&Uuid::from(id), Type::UUID)]).await?;
    rows.first().map(read_detail).transpose()
}

pub(crate) fn read_detail(row: &Row) -> Result<TaskDetail, PostgresError> {
    let task = TaskRow::read(row)?.task;
    let mut cells = Cells::from(row, LIVE_TASK_COLUMN_COUNT);
    let place = |failure: PostgresError| PostgresError::corrupt(format_args!("task {}", task.id), failure);
    let request = request(&mut cells).map_err(place)?.into();
    let answer = answer(&mut cells).map_err(place)?;
    Ok(TaskDetail { task, request, answer })
}

const STATE: &str = concat!(
    "SELECT ",
    any_task!(),
    " FROM redrive.tasks",
    any_task!(join),
    "WHERE tasks.tenant = $1 AND tasks.id = $2"
);

/// The task's state.
pub(crate) async fn state(
    connection: &Connection,
    tenant: &TenantId,
    id: TaskId,
) -> Result<Option<TaskRow>, PostgresError> {
    let rows = connection.query(STATE, &[(&tenant.as_str(), Type::TEXT), (&Uuid::from(id), Type::UUID)]).await?;
    rows.first().map(TaskRow::read).transpose()
}

const LOCK: &str = concat!(
    "SELECT ",
    live_task!(),
    " FROM redrive.live
      JOIN redrive.tasks ON tasks.tenant = live.tenant AND tasks.id = live.id
      WHERE live.tenant = $1 AND live.id = $2
      FOR UPDATE OF live"
);

/// A task that is about to be changed.
pub(crate) enum Locked {
    /// The task has not ended, and is locked until the end of the transaction.
    Live(Box<Task>),
    Ended(Box<Task>),
    NotFound,
}

/// How often to look for a task that is neither live nor ended: it was replayed between the two reads.
const LOOKS: usize = 5;

/// Locks the task if it has not ended.
pub(crate) async fn lock(connection: &Connection, tenant: &TenantId, id: TaskId) -> Result<Locked, PostgresError> {
    for _ in 0..LOOKS {
        let rows = connection.query(LOCK, &[(&tenant.as_str(), Type::TEXT), (&Uuid::from(id), Type::UUID)]).await?;
        if let Some(row) = rows.first() {
            return Ok(Locked::Live(Box::new(TaskRow::read(row)?.task)));
        }
        match state(connection, tenant, id).await? {
            None => return Ok(Locked::NotFound),
            Some(row) if row.task.status.is_ended() => return Ok(Locked::Ended(Box::new(row.task))),
            Some(_) => {}
        }
    }
    Err(PostgresError::corrupt(format_args!("task {id}"), "is live and is not"))
}
