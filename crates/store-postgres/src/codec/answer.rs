//! What a dependency answered last.

use bytes::Bytes;
use redrive_core::Answer;

use super::Cells;
use super::request::parsed;
use crate::failure::Failure;

/// Reads status, headers, body and truncated; none of them if there was no answer.
pub(crate) fn answer(cells: &mut Cells<'_>) -> Result<Option<Answer>, Failure> {
    let Some(status) = cells.optional_narrow()? else { return Ok(None) };
    let headers = parsed(cells)?.unwrap_or_default();
    let body: Option<&[u8]> = cells.get()?;
    let truncated: Option<bool> = cells.get()?;
    let body = Bytes::copy_from_slice(body.unwrap_or_default());
    Ok(Some(Answer { status, headers, body, truncated: truncated.unwrap_or_default() }))
}
