//! Runs ANALYZE on tables that have grown a lot. Autovacuum does the same, a minute or more later.

use crate::codec::Cells;
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// The tables in which more rows have changed since their last ANALYZE than they had then.
const OUTGROWN: &str = "
SELECT stat.relname::text
FROM pg_catalog.pg_stat_user_tables AS stat JOIN pg_catalog.pg_class AS relation ON relation.oid = stat.relid
WHERE stat.schemaname = 'redrive' AND stat.n_mod_since_analyze > 5000 + greatest(relation.reltuples, 0)
  AND stat.relname IN ('tasks', 'live', 'log', 'dead_letters', 'blobs', 'idempotency_records')";

/// Analyses the tables that have outgrown their statistics. This needs ownership of the tables; without it PostgreSQL
/// only issues a warning.
pub(crate) async fn analyze_outgrown(connection: &Connection) -> Result<(), PostgresError> {
    for row in &connection.query(OUTGROWN, &[]).await? {
        let table: &str = Cells::of(row).get()?;
        connection.execute(&format!("ANALYZE redrive.{table}")).await?;
    }
    Ok(())
}
