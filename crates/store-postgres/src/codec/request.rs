//! The request that a task sends.

use std::collections::BTreeMap;

use bytes::Bytes;
use redrive_core::{Body, BodyRef, Request};
use serde::de::DeserializeOwned;

use super::Cells;
use crate::postgres_error::PostgresError;

/// Reads the columns of [`request_columns`].
pub(crate) fn request(cells: &mut Cells<'_>) -> Result<Request, PostgresError> {
    Ok(Request {
        target_url: cells.get()?,
        method: cells.get()?,
        headers: parsed(cells)?.unwrap_or_default(),
        body: body(cells)?,
        overrides: parsed(cells)?,
        labels: labels(cells)?,
    })
}

pub(crate) fn labels(cells: &mut Cells<'_>) -> Result<BTreeMap<String, String>, PostgresError> {
    Ok(parsed(cells)?.unwrap_or_default())
}

/// The columns that [`request`] expects, from `tasks`.
macro_rules! request_columns {
    () => {
        "tasks.target_url, tasks.method, tasks.headers, tasks.body_ref, tasks.body, tasks.overrides, tasks.labels"
    };
}
pub(crate) use request_columns;

/// The number of those columns.
pub(crate) const REQUEST_COLUMN_COUNT: usize = 7;

/// Reads a reference to a stored body and the bytes of an inline one.
pub(super) fn body(cells: &mut Cells<'_>) -> Result<Body, PostgresError> {
    let stored = cells.optional_parsed(|record| BodyRef::from_record(record).ok())?;
    let inline: Option<&[u8]> = cells.get()?;
    Ok(stored.map_or_else(|| Bytes::copy_from_slice(inline.unwrap_or_default()).into(), Body::Stored))
}

pub(super) fn parsed<T: DeserializeOwned>(cells: &mut Cells<'_>) -> Result<Option<T>, PostgresError> {
    let text: Option<&str> = cells.get()?;
    text.map(serde_json::from_str).transpose().map_err(|error| cells.wrong(error))
}
