//! The hot half of a task: its row in `tasks`.

use std::time::Duration;

use redrive_core::attempt::LastError;
use redrive_core::{CorrelationId, ErrorType, IdempotencyKey, Reason, Status, Task, TaskId, Timestamp};
use redrive_store::{Lease, Token};
use rusqlite::types::FromSql;
use rusqlite::{Connection, Row};

use super::{status, timestamp};
use crate::names::Names;
use crate::sqlite_error::SqliteError;

/// The columns of a task, in the order that [`TaskRow::read`] expects, from a table that is called `tasks`.
macro_rules! task_columns {
    () => {
        "tasks.id, tasks.tail, tasks.tenant, tasks.lane, tasks.policy, tasks.status, tasks.attempt_number,
         tasks.max_attempts, tasks.attempt_timeout_ms, tasks.created_at, tasks.deadline_at, tasks.next_attempt_at,
         tasks.ended_at, tasks.token, tasks.lease_since, tasks.lease_until, tasks.cancel_requested, tasks.backoff_us,
         tasks.reason, tasks.error_kind, tasks.error_message, tasks.idempotency_key, tasks.run, tasks.attempts_before,
         coalesce(tasks.run_started_at, tasks.created_at), tasks.dns_failures, tasks.correlation_id,
         tasks.trace_parent"
    };
}
pub(crate) use task_columns;

/// The number of those columns, which is where the columns of a joined table start.
pub(crate) const TASK_COLUMN_COUNT: usize = 28;

/// A task as read from its row, with the numbers that stand for names.
#[derive(Debug)]
pub(crate) struct TaskRow {
    pub(crate) task: Task,
    pub(crate) lease: Lease,
    pub(crate) tenant: i64,
    pub(crate) version: i64,
}

impl TaskRow {
    /// Reads the first columns of `row` as [`task_columns`].
    pub(crate) fn read(connection: &Connection, names: &mut Names, row: &Row<'_>) -> Result<Self, SqliteError> {
        let sequence: i64 = row.get(0)?;
        let cells = Cells { row, sequence };
        let id = TaskId::from_parts(cells.unsigned(0)?, cells.unsigned(1)?);
        let version = cells.get(4)?;
        let lane = names.lane(connection, cells.get(3)?).map_err(|failure| cells.placed(failure))?;
        let policy = names.version(connection, version).map_err(|failure| cells.placed(failure))?;
        let task = Task {
            id,
            lane,
            idempotency_key: cells.parsed(21, |text| IdempotencyKey::try_new(text).ok())?,
            correlation_id: cells.optional(26, |text| CorrelationId::try_new(text).ok())?,
            trace_parent: cells.optional(27, |text| text.parse().ok())?,
            policy,
            status: cells.status(5)?,
            reason: cells.optional(18, Reason::from_name)?,
            attempt_number: cells.get(6)?,
            run: cells.get(22)?,
            attempts_before: cells.get(23)?,
            max_attempts: cells.get(7)?,
            attempt_timeout: Duration::from_millis(cells.unsigned(8)?),
            created_at: cells.timestamp(9)?,
            run_started_at: cells.timestamp(24)?,
            deadline_at: cells.timestamp(10)?,
            next_attempt_at: cells.optional_timestamp(11)?,
            ended_at: cells.optional_timestamp(12)?,
            backoff: cells.get::<Option<u64>>(17)?.map(Duration::from_micros),
            dns_failures: cells.get(25)?,
            cancel_requested: cells.get(16)?,
            last_error: match cells.optional(19, ErrorType::from_name)? {
                Some(kind) => Some(LastError { kind, message: cells.get(20)? }),
                None => None,
            },
        };
        let lease = Lease { token: cells.token(13)?, since: cells.timestamp(14)?, until: cells.timestamp(15)? };
        Ok(TaskRow { task, lease, tenant: cells.get(2)?, version })
    }
}

/// The cells of a row, which name the column of a value that cannot be read.
struct Cells<'a> {
    row: &'a Row<'a>,
    sequence: i64,
}

impl Cells<'_> {
    fn get<T: FromSql>(&self, column: usize) -> Result<T, SqliteError> {
        self.row.get(column).map_err(|error| self.place(error))
    }

    fn unsigned(&self, column: usize) -> Result<u64, SqliteError> {
        self.get(column)
    }

    /// A token that can still be incremented: no other one was ever assigned.
    fn token(&self, column: usize) -> Result<Token, SqliteError> {
        match self.unsigned(column)? {
            token if token < i64::MAX.cast_unsigned() => Ok(Token(token)),
            token => Err(self.place(format_args!("token {token}"))),
        }
    }

    fn status(&self, column: usize) -> Result<Status, SqliteError> {
        let code = self.get(column)?;
        status(code).ok_or_else(|| self.place(format_args!("status {code}")))
    }

    fn timestamp(&self, column: usize) -> Result<Timestamp, SqliteError> {
        let millis = self.get(column)?;
        timestamp(millis).ok_or_else(|| self.place(format_args!("time {millis} in column {column}")))
    }

    fn optional_timestamp(&self, column: usize) -> Result<Option<Timestamp>, SqliteError> {
        self.get::<Option<u64>>(column).map(|millis| millis.map(Timestamp::from_millis))
    }

    fn parsed<T>(&self, column: usize, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, SqliteError> {
        let cell = self.row.get_ref(column).map_err(|error| self.place(error))?;
        let text = cell.as_str().map_err(|error| self.place(error))?;
        parse(text).ok_or_else(|| self.place(format_args!("{text:?} in column {column}")))
    }

    fn optional<T>(&self, column: usize, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, SqliteError> {
        match self.row.get_ref(column).map_err(|error| self.place(error))? {
            rusqlite::types::ValueRef::Null => Ok(None),
            _ => self.parsed(column, parse).map(Some),
        }
    }

    /// Adds the place to a failed lookup of a name; a failure of the database stays unchanged.
    fn placed(&self, failure: SqliteError) -> SqliteError {
        failure.at(format_args!("task {}", self.sequence))
    }

    fn place(&self, what: impl std::fmt::Display) -> SqliteError {
        SqliteError::corrupt(format_args!("task {}", self.sequence), what)
    }
}
