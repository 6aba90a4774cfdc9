//! An idempotency record: its row in `records`.

use std::time::Duration;

use redrive_core::idempotency::{
    Completion, Epoch, ExecutionId, Owner, Record, RequestHash, Resource, Response, State,
};
use redrive_core::{RecordName, Timestamp};
use rusqlite::Row;

use super::body;
use super::request::parsed;
use crate::sqlite_error::SqliteError;

/// The columns of a record, in the order that [`RecordRow::read`] expects. The body is the last one, so that a row is
/// compared without reading it.
macro_rules! record_columns {
    () => {
        "id, operation, name, state, expires_at, updated_at, started_at, lease_until, retention_ms, epoch, execution,
         request_hash, resource_kind, resource_id, response_status, response_headers, body"
    };
}
pub(crate) use record_columns;

/// Places among these columns.
pub(crate) mod record_column {
    pub(crate) const OPERATION: usize = 1;
    pub(crate) const NAME: usize = 2;
    pub(crate) const EXPIRES_AT: usize = 4;
    pub(crate) const UPDATED_AT: usize = 5;
}

/// The number of the first state, for the same reason as with tasks: a change of state does not change the size of a row.
const FIRST_STATE: i64 = 2;

/// The number of a state in the table. Statements contain it as a literal.
pub(crate) const fn state_code(state: State) -> i64 {
    FIRST_STATE + state as i64
}

fn state(code: i64) -> Option<State> {
    State::ALL.into_iter().find(|state| state_code(*state) == code)
}

/// A record as read from its row.
#[derive(Debug)]
pub(crate) struct RecordRow {
    pub(crate) id: i64,
    pub(crate) name: RecordName,
    pub(crate) record: Record,
}

impl RecordRow {
    /// Reads the columns of `row` as [`record_columns`].
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, SqliteError> {
        let id: i64 = row.get(0)?;
        let read = || {
            row.get::<_, i64>(record_column::OPERATION)?;
            let name = row.get_ref(record_column::NAME)?.as_str().map_err(rusqlite::Error::from)?;
            let name = RecordName::try_new(name).map_err(|error| SqliteError::corrupt("name", error))?;
            Ok(RecordRow { id, name, record: record(row)? })
        };
        read().map_err(|failure: SqliteError| failure.at(format_args!("record {id}")))
    }
}

fn record(row: &Row<'_>) -> Result<Record, SqliteError> {
    let timestamp = |column| row.get(column).map(Timestamp::from_millis);
    let code = row.get(3)?;
    Ok(Record {
        request_hash: RequestHash(row.get(11)?),
        state: state(code).ok_or_else(|| SqliteError::corrupt("state", code))?,
        owner: Owner { execution: ExecutionId::from_u128(u128::from_be_bytes(row.get(10)?)), epoch: epoch(row, 9)? },
        lease_until: timestamp(7)?,
        retention: Duration::from_millis(row.get(8)?),
        started_at: timestamp(6)?,
        updated_at: timestamp(record_column::UPDATED_AT)?,
        expires_at: timestamp(record_column::EXPIRES_AT)?,
        completion: Completion { response: response(row, 14)?, resource: resource(row, 12)? },
    })
}

/// An epoch that can still be incremented: no other one was ever assigned.
fn epoch(row: &Row<'_>, column: usize) -> Result<Epoch, SqliteError> {
    match row.get(column)? {
        epoch if epoch < i64::MAX.cast_unsigned() => Ok(Epoch(epoch)),
        epoch => Err(SqliteError::corrupt("epoch", epoch)),
    }
}

/// Reads status, headers and body from the columns from `first` on.
fn response(row: &Row<'_>, first: usize) -> Result<Option<Response>, SqliteError> {
    let Some(status) = row.get(first)? else { return Ok(None) };
    Ok(Some(Response { status, headers: parsed(row, first + 1)?.unwrap_or_default(), body: body(row, first + 2)? }))
}

/// Reads type and id from the columns from `first` on.
fn resource(row: &Row<'_>, first: usize) -> Result<Option<Resource>, SqliteError> {
    let Some(kind) = row.get::<_, Option<String>>(first)? else { return Ok(None) };
    let resource = Resource::try_new(kind, row.get::<_, String>(first + 1)?);
    resource.map(Some).map_err(|error| SqliteError::corrupt("resource", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_spell_out_these_numbers() {
        let codes = State::ALL.map(state_code);
        assert_eq!(codes, [2, 3, 4, 5, 6]);
        assert_eq!(codes.map(state), State::ALL.map(Some));
        assert_eq!((state(1), state(7)), (None, None));
    }
}
