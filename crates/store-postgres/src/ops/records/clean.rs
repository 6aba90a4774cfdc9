//! Removing records that have expired.

use redrive_core::Timestamp;
use tokio_postgres::types::Type;

use crate::codec::{Cells, millis};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// Rows that a transaction holds are left for the next time: it may be reserving them again.
const CLEAN: &str = "
WITH gone AS (
    DELETE FROM redrive.idempotency_records
    WHERE ctid = ANY (ARRAY(
        SELECT expired.ctid FROM redrive.idempotency_records AS expired
        WHERE expired.expires_at <= $1
        ORDER BY expired.expires_at
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING 1
)
SELECT count(*) FROM gone";

pub(crate) async fn clean(connection: &Connection, now: Timestamp, limit: usize) -> Result<usize, PostgresError> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = connection.query(CLEAN, &[(&millis(now), Type::INT8), (&most, Type::INT8)]).await?;
    rows.first().map_or(Ok(0), |row| Cells::of(row).narrow())
}
