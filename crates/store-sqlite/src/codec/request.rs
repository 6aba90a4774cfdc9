//! The cold half of a task: the request that it sends.

use std::collections::BTreeMap;

use redrive_core::Request;
use rusqlite::Row;
use serde::de::DeserializeOwned;

use crate::sqlite_error::SqliteError;

/// The columns of a request, in the order that [`request`] expects, from a table that is called `requests`.
macro_rules! request_columns {
    () => {
        "requests.target_url, requests.method, requests.headers, requests.body, requests.overrides, requests.labels"
    };
}
pub(crate) use request_columns;

/// Reads the columns from `first` on as [`request_columns`].
pub(crate) fn request(row: &Row<'_>, first: usize, task: i64) -> Result<Request, SqliteError> {
    let place = |what: &dyn std::fmt::Display| SqliteError::corrupt(format_args!("request of task {task}"), what);
    Ok(Request {
        target_url: row.get(first).map_err(|error| place(&error))?,
        method: row.get(first + 1).map_err(|error| place(&error))?,
        headers: parsed(row, first + 2).map_err(|error| place(&error))?.unwrap_or_default(),
        body: super::body(row, first + 3).map_err(|error| place(&error))?,
        overrides: parsed(row, first + 4).map_err(|error| place(&error))?,
        labels: parsed::<BTreeMap<_, _>>(row, first + 5).map_err(|error| place(&error))?.unwrap_or_default(),
    })
}

pub(super) fn parsed<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<Option<T>, rusqlite::Error> {
    let cell = row.get_ref(column)?;
    let Some(text) = cell.as_str_or_null()? else { return Ok(None) };
    let value = serde_json::from_str(text);
    value.map(Some).map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, cell.data_type(), error.into()))
}
