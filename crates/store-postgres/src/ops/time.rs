//! The database's clock.

use redrive_core::Timestamp;

use crate::codec::Cells;
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// The current time. Not `now()`, which is the start of the transaction.
const TIME: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

pub(crate) async fn time(connection: &Connection) -> Result<Timestamp, PostgresError> {
    let rows = connection.query(TIME, &[]).await?;
    let row = rows.first().ok_or_else(|| PostgresError::corrupt("the database's clock", "no answer"))?;
    Cells::of(row).timestamp()
}
