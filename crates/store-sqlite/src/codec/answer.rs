//! The last answer of a dependency.

use redrive_core::{Answer, Body};
use redrive_store::Error;
use redrive_store::encoding::json;
use rusqlite::Row;

use super::body;
use super::request::parsed;
use crate::sqlite_error::SqliteError;

/// An answer whose headers are encoded as JSON.
#[derive(Debug)]
pub(crate) struct EncodedAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Option<String>,
    pub(crate) body: Body,
    pub(crate) truncated: bool,
}

impl EncodedAnswer {
    pub(crate) fn new(answer: Answer) -> Result<Self, Error> {
        let headers = json(&answer.headers, answer.headers.is_empty())?;
        Ok(EncodedAnswer { status: answer.status, headers, body: answer.body, truncated: answer.truncated })
    }
}

/// Reads the columns from `first` on: status, headers, body, truncated; none of them if there was no answer.
pub(crate) fn answer(row: &Row<'_>, first: usize, task: i64) -> Result<Option<Answer>, SqliteError> {
    let read = || {
        let Some(status) = row.get(first)? else { return Ok(None) };
        Ok::<_, rusqlite::Error>(Some(Answer {
            status,
            headers: parsed(row, first + 1)?.unwrap_or_default(),
            body: body(row, first + 2)?,
            truncated: row.get(first + 3)?,
        }))
    };
    read().map_err(|error| SqliteError::corrupt(format_args!("answer of task {task}"), error))
}
