//! Counting the records of each operation.

use redrive_core::TenantId;
use redrive_core::idempotency::Operation;
use redrive_store::OperationCounts;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::Cells;
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// The number of rows of an operation in one state, up to `$4`. With a range of one state and an order by state, because
/// only the index by state has that order: the primary key would be as good if the planner believes that there are few
/// rows.
macro_rules! count {
    ($state:literal) => {
        concat!(
            "(SELECT count(*) FROM (
                 SELECT FROM redrive.idempotency_records AS counted
                 WHERE counted.tenant = $1 AND counted.operation = operations.operation
                   AND counted.state >= '",
            $state,
            "' AND counted.state <= '",
            $state,
            "' AND counted.state <> 'RELEASED'
                 ORDER BY counted.tenant, counted.operation, counted.state
                 LIMIT $4
             ) AS counted)"
        )
    };
}

/// Jumps along the index from one operation to the next one, so it reads one entry for each, and what it counts.
const COUNTS: &str = concat!(
    "WITH RECURSIVE operations AS (
         (
             SELECT record.operation FROM redrive.idempotency_records AS record
             WHERE record.tenant = $1 AND record.operation > $2 AND record.state <> 'RELEASED'
             ORDER BY record.tenant, record.operation, record.state
             LIMIT 1
         )
         UNION ALL
         SELECT following.operation
         FROM operations CROSS JOIN LATERAL (
             SELECT record.operation FROM redrive.idempotency_records AS record
             WHERE record.tenant = $1 AND record.operation > operations.operation AND record.state <> 'RELEASED'
             ORDER BY record.tenant, record.operation, record.state
             LIMIT 1
         ) AS following
     )
     SELECT operations.operation, ",
    count!("IN_PROGRESS"),
    ", ",
    count!("SUCCEEDED"),
    ", ",
    count!("FAILED_RETRYABLE"),
    ", ",
    count!("FAILED_FINAL"),
    "
     FROM (SELECT * FROM operations LIMIT $3) AS operations"
);

pub(crate) async fn counts(
    connection: &Connection,
    tenant: &TenantId,
    after: Option<&Operation>,
    limit: usize,
    most: u32,
) -> Result<Vec<OperationCounts>, PostgresError> {
    let after = after.map(Operation::to_string).unwrap_or_default();
    let arguments = [
        (&tenant.as_str() as _, Type::TEXT),
        (&after as _, Type::TEXT),
        (&i64::try_from(limit).unwrap_or(i64::MAX) as _, Type::INT8),
        (&i64::from(most) as _, Type::INT8),
    ];
    let mut counts = Vec::new();
    for row in &connection.query(COUNTS, &arguments).await? {
        match read(row) {
            Err(failure) if failure.is_about_a_value() => {
                tracing::warn!(%failure, "the operation of some idempotency records cannot be read");
            }
            read => counts.push(read?),
        }
    }
    Ok(counts)
}

fn read(row: &Row) -> Result<OperationCounts, PostgresError> {
    let mut cells = Cells::of(row);
    Ok(OperationCounts {
        operation: cells.parsed(|text| text.parse().ok())?,
        in_progress: cells.narrow()?,
        succeeded: cells.narrow()?,
        failed_retryable: cells.narrow()?,
        failed_final: cells.narrow()?,
    })
}
