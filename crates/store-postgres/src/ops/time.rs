//! The database's clock.

use redrive_core::Timestamp;

use crate::codec::Cells;
use crate::connection::Connection;
use crate::failure::Failure;

/// The current time. Not `now()`, which is the start of the transaction.
const TIME: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

pub(crate) async fn time(connection: &Connection) -> Result<Timestamp, Failure> {
    let rows = connection.query(TIME, &[]).await?;
    let row = rows.first().ok_or_else(|| Failure::corrupt("the database's clock", "no answer"))?;
    Cells::of(row).timestamp()
}
