//! Entries of the attempt log.

use std::time::Duration;

use redrive_core::attempt::LastError;
use redrive_core::{Attempt, ErrorType, Outcome, Timestamp};
use rusqlite::Row;

use crate::sqlite_error::SqliteError;

/// Reads number, start, duration, outcome, response status, error kind, error message, backoff and number in the run.
pub(crate) fn attempt(row: &Row<'_>, task: i64) -> Result<Attempt, SqliteError> {
    let place = |what: &dyn std::fmt::Display| SqliteError::corrupt(format_args!("attempt of task {task}"), what);
    let read = || {
        let outcome: String = row.get(3)?;
        let kind: Option<String> = row.get(5)?;
        let message: Option<String> = row.get(6)?;
        let number = row.get(0)?;
        let attempt = Attempt {
            number,
            number_in_run: row.get::<_, Option<u32>>(8)?.unwrap_or(number),
            started_at: Timestamp::from_millis(row.get(1)?),
            duration: row.get::<_, Option<u64>>(2)?.map(Duration::from_micros),
            outcome: Outcome::Unknown,
            response_status: row.get(4)?,
            error: None,
            backoff: row.get::<_, Option<u64>>(7)?.map(Duration::from_micros),
        };
        Ok::<_, rusqlite::Error>((attempt, outcome, kind, message))
    };
    let (attempt, outcome, kind, message) = read().map_err(|error| place(&error))?;
    let outcome = Outcome::from_name(&outcome).ok_or_else(|| place(&format_args!("outcome {outcome:?}")))?;
    let error = match kind {
        None => None,
        Some(name) => {
            let kind = ErrorType::from_name(&name).ok_or_else(|| place(&format_args!("error kind {name:?}")))?;
            Some(LastError { kind, message: message.unwrap_or_default() })
        }
    };
    Ok(Attempt { outcome, error, ..attempt })
}
