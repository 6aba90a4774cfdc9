//! The last answer of a dependency.

use redrive_core::Answer;

use super::Cells;
use super::request::{body, parsed};
use crate::postgres_error::PostgresError;

/// Reads status, headers, the reference to a stored body, an inline body, and truncated; none of them if there was no answer.
pub(crate) fn answer(cells: &mut Cells<'_>) -> Result<Option<Answer>, PostgresError> {
    let Some(status) = cells.optional_narrow()? else { return Ok(None) };
    let headers = parsed(cells)?.unwrap_or_default();
    let body = body(cells)?;
    let truncated: Option<bool> = cells.get()?;
    Ok(Some(Answer { status, headers, body, truncated: truncated.unwrap_or_default() }))
}
