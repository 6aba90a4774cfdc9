//! Entries of the attempt log.

use redrive_core::{Attempt, Outcome};
use tokio_postgres::Row;

use super::Cells;
use super::task::error;
use crate::postgres_error::PostgresError;

/// The columns that [`attempt`] expects, from `log`.
macro_rules! attempt_columns {
    () => {
        "log.number, coalesce(log.number_in_run, log.number), log.started_at, log.duration_us, log.outcome, log.response_status, log.error_kind,
         log.error_message, log.backoff_us"
    };
}
pub(crate) use attempt_columns;

pub(crate) fn attempt(row: &Row) -> Result<Attempt, PostgresError> {
    let mut cells = Cells::of(row);
    Ok(Attempt {
        number: cells.narrow()?,
        number_in_run: cells.narrow()?,
        started_at: cells.timestamp()?,
        duration: cells.optional_micros()?,
        outcome: cells.parsed(Outcome::from_name)?,
        response_status: cells.optional_narrow()?,
        error: error(&mut cells)?,
        backoff: cells.optional_micros()?,
    })
}
