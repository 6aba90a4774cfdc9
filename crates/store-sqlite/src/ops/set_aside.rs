//! Rows that this program cannot read: they are set aside, so that they affect nothing else.
//!
//! Such a row was changed by hand, or a newer program wrote it. A task that is set aside keeps everything except its
//! status, so no index finds it; nothing is counted and nothing is lost. A program that can read it takes it back when
//! it opens the store. Unreadable policy versions, blobs and idempotency records block no other row, so they are only
//! recorded.

use std::fmt;

use redrive_store::{SetAside, UnreadableRow};
use rusqlite::Connection;

use crate::codec::status_code;
use crate::names::Names;
use crate::ops::{blobs, find, policies, records};
use crate::readers::Reader;
use crate::sqlite_error::SqliteError;

/// The status of a task that is set aside.
pub(crate) const SET_ASIDE: i64 = 1;

/// A row that could not be read.
#[derive(Debug, Clone)]
pub(crate) struct Damaged {
    kind: Kind,
    row: String,
    problem: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Task,
    PolicyVersion,
    Blob,
    Record,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Task, Kind::PolicyVersion, Kind::Blob, Kind::Record];

    const fn as_str(self) -> &'static str {
        match self {
            Kind::Task => "task",
            Kind::PolicyVersion => "policy version",
            Kind::Blob => "blob",
            Kind::Record => "record",
        }
    }
}

impl Damaged {
    pub(crate) fn task(task: i64, problem: impl fmt::Display) -> Self {
        Damaged { kind: Kind::Task, row: task.to_string(), problem: problem.to_string() }
    }

    pub(crate) fn policy_version(version: i64, problem: impl fmt::Display) -> Self {
        Damaged { kind: Kind::PolicyVersion, row: version.to_string(), problem: problem.to_string() }
    }

    pub(crate) fn blob(record: &str, problem: impl fmt::Display) -> Self {
        Damaged { kind: Kind::Blob, row: record.to_owned(), problem: problem.to_string() }
    }

    pub(crate) fn record(record: i64, problem: impl fmt::Display) -> Self {
        Damaged { kind: Kind::Record, row: record.to_string(), problem: problem.to_string() }
    }
}

/// The value that was read from a task, or `None` if it is unreadable: then the task is added to `damaged`.
pub(crate) fn readable<T>(
    read: Result<T, SqliteError>,
    damaged: &mut Vec<Damaged>,
    note: impl FnOnce(String) -> Damaged,
) -> Result<Option<T>, SqliteError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(failure) if failure.is_about_a_value() => {
            damaged.push(note(failure.to_string()));
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Sets rows aside, and logs those that were not set aside before; returns their number.
pub(crate) fn set_aside(connection: &Connection, damaged: &[Damaged]) -> Result<usize, SqliteError> {
    let mut note = connection.prepare_cached(
        "INSERT OR IGNORE INTO set_aside (kind, row, was, problem)
         VALUES (?1, ?2, CASE ?1 WHEN 'task' THEN (SELECT status FROM tasks WHERE id = ?2) END, ?3)",
    )?;
    let mut update = connection.prepare_cached("UPDATE tasks SET status = ?2 WHERE id = ?1")?;
    let mut fresh = 0;
    for Damaged { kind, row, problem } in damaged {
        if note.execute((kind.as_str(), row, problem))? == 0 {
            continue;
        }
        fresh += 1;
        if *kind == Kind::Task {
            update.execute((row, SET_ASIDE))?;
        }
        tracing::error!(kind = kind.as_str(), row, problem, "set aside what this program cannot understand");
    }
    Ok(fresh)
}

/// Removes the note about an idempotency record that is removed.
pub(crate) fn forget_record(connection: &Connection, record: i64) -> Result<(), SqliteError> {
    let mut delete = connection.prepare_cached("DELETE FROM set_aside WHERE kind = ?1 AND row = ?2")?;
    delete.execute((Kind::Record.as_str(), record))?;
    Ok(())
}

/// Takes back the rows that this program can read, in the open transaction; returns their number.
pub(crate) fn take_back(connection: &Connection) -> Result<usize, SqliteError> {
    let mut noted = connection.prepare("SELECT kind, row FROM set_aside")?;
    let noted: Vec<(String, String)> =
        noted.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let mut names = Names::default();
    let mut taken_back = 0;
    for (kind, row) in noted {
        let Some(kind) = Kind::ALL.into_iter().find(|known| known.as_str() == kind) else { continue };
        if is_understood(connection, &mut names, kind, &row)? {
            connection.execute("DELETE FROM set_aside WHERE kind = ?1 AND row = ?2", (kind.as_str(), &row))?;
            taken_back += 1;
        }
    }
    Ok(taken_back)
}

/// Restores a task's status as it was: that it is not a number may be why the task was set aside.
const SET_BACK: &str = "UPDATE tasks
     SET status = coalesce((SELECT was FROM set_aside WHERE kind = 'task' AND row = ?2), ?3)
     WHERE id = ?1";

fn is_understood(connection: &Connection, names: &mut Names, kind: Kind, row: &str) -> Result<bool, SqliteError> {
    let read = match kind {
        Kind::Task => {
            let Ok(task) = row.parse::<i64>() else { return Ok(false) };
            connection.execute(SET_BACK, (task, row, SET_ASIDE))?;
            let read = find::detail(connection, names, task).map(drop);
            if read.is_err() {
                connection.execute("UPDATE tasks SET status = ?2 WHERE id = ?1", (task, SET_ASIDE))?;
            }
            read
        }
        Kind::PolicyVersion => policies::read_version(connection, row).map(drop),
        Kind::Blob => blobs::read_record(row).map(drop),
        Kind::Record => match row.parse() {
            Ok(record) => records::find::by_id(connection, record).map(drop),
            Err(_) => return Ok(false),
        },
    };
    match read {
        Err(failure) if !failure.is_about_a_value() => Err(failure),
        read => Ok(read.is_ok()),
    }
}

/// How many rows are set aside, and the first of them.
pub(crate) fn list(reader: &mut Reader, limit: usize) -> Result<SetAside, SqliteError> {
    let connection = &reader.connection;
    let count = connection.prepare_cached("SELECT count(*) FROM set_aside")?.query_row([], |row| row.get(0))?;
    let mut select =
        connection.prepare_cached("SELECT kind, row, problem FROM set_aside ORDER BY kind, row LIMIT ?1")?;
    let rows = select.query_map([i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
        let (kind, key): (String, String) = (row.get(0)?, row.get(1)?);
        Ok(UnreadableRow { row: format!("{kind} {key}"), problem: row.get(2)? })
    })?;
    Ok(SetAside { count, rows: rows.collect::<Result<_, _>>()? })
}

const _: () = assert!(SET_ASIDE < status_code(redrive_core::Status::Pending), "no status has this number");
