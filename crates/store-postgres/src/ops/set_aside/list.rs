//! Listing the rows that are set aside.

use redrive_store::{SetAside, UnreadableRow};
use tokio_postgres::types::Type;

use crate::codec::Cells;
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

const COUNT: &str = "SELECT count(*) FROM redrive.set_aside";

const FIRST: &str = "
SELECT kind, name, tenant, problem FROM redrive.set_aside ORDER BY kind, tenant, name LIMIT $1";

/// How many rows are set aside, and the first of them.
pub(crate) async fn list(connection: &Connection, limit: usize) -> Result<SetAside, PostgresError> {
    let count = connection.query(COUNT, &[]).await?;
    let count = count.first().map_or(Ok(0), |row| Cells::of(row).unsigned())?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = connection.query(FIRST, &[(&limit, Type::INT8)]).await?;
    let read = |row| {
        let mut cells = Cells::of(row);
        let (kind, name, tenant): (&str, &str, &str) = (cells.get()?, cells.get()?, cells.get()?);
        Ok(UnreadableRow { row: format!("{kind} {name} of tenant {tenant}"), problem: cells.get()? })
    };
    Ok(SetAside { count, rows: rows.iter().map(read).collect::<Result<_, PostgresError>>()? })
}
