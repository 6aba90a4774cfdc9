//! Reading records.

use redrive_core::idempotency::Record;
use tokio_postgres::types::Type;

use super::keys::{EncodedKey, KeyArrays};
use super::slots::{READ as READ_EACH, Slot, fill};
use crate::codec::{Cells, record, record_columns};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

const READ: &str = concat!(
    "SELECT ",
    record_columns!(),
    "
     FROM redrive.idempotency_records AS record
     WHERE record.tenant = $1 AND record.operation = $2 AND record.name = $3"
);

/// The record of a key, also if it has expired.
pub(crate) async fn read(connection: &Connection, key: &EncodedKey) -> Result<Option<Record>, PostgresError> {
    let key = key.text();
    let arguments = [(&key.tenant as _, Type::TEXT), (&key.operation as _, Type::TEXT), (&key.name as _, Type::TEXT)];
    let rows = connection.query(READ, &arguments).await?;
    rows.first().map(|row| record(&mut Cells::of(row))).transpose()
}

/// The records of keys, in their order.
pub(crate) async fn read_each(
    connection: &Connection,
    keys: &[(usize, EncodedKey)],
) -> Result<Vec<Option<Record>>, PostgresError> {
    let columns = KeyArrays::of(keys.iter().map(|(_, key)| key.text()));
    let rows = connection.query(READ_EACH, &columns.arguments()).await?;
    let mut slots = vec![Slot::Absent; keys.len()];
    let places: Vec<usize> = (0..keys.len()).collect();
    fill(&mut slots, &places, &rows, "reading records")?;
    let record = |slot| if let Slot::Present(record) = slot { Some(record) } else { None };
    Ok(slots.into_iter().map(record).collect())
}
