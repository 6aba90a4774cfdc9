//! A body in its column: its bytes, or a text that refers to a blob.

use redrive_core::{Body, BodyRef};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Row, ToSql};

/// A body to write into a column.
pub(crate) struct Encoded<'a>(pub(crate) &'a Body);

impl ToSql for Encoded<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Body::Inline(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Body::Stored(stored) => ToSqlOutput::Owned(Value::Text(stored.to_record())),
            Body::LeftOut(_) => {
                return Err(rusqlite::Error::ToSqlConversionFailure(
                    "a body that was not read cannot be written".into(),
                ));
            }
        })
    }
}

/// Reads the body in this column.
pub(crate) fn body(row: &Row<'_>, column: usize) -> Result<Body, rusqlite::Error> {
    let cell = row.get_ref(column)?;
    if let ValueRef::Text(_) = cell {
        return parsed(cell.as_str()?, column).map(Body::Stored);
    }
    Ok(Body::from(bytes::Bytes::copy_from_slice(cell.as_blob()?)))
}

/// The reference that this text contains.
pub(crate) fn parsed(record: &str, column: usize) -> Result<BodyRef, rusqlite::Error> {
    BodyRef::from_record(record)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.into()))
}
