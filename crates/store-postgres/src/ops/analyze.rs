//! Telling the planner how much there is, when it has become much more: autovacuum does the same, a minute later or more.

use crate::codec::Cells;
use crate::connection::Connection;
use crate::failure::Failure;

/// The tables of which more has changed since they were looked at than there was then.
const OUTGROWN: &str = "
SELECT stat.relname::text
FROM pg_catalog.pg_stat_user_tables AS stat JOIN pg_catalog.pg_class AS relation ON relation.oid = stat.relid
WHERE stat.schemaname = 'redrive' AND stat.n_mod_since_analyze > 5000 + greatest(relation.reltuples, 0)
  AND stat.relname IN ('tasks', 'live', 'log', 'dead_letters', 'blobs')";

/// Has PostgreSQL look at what has outgrown what it knows. One who does not own the tables is told so, and nothing happens.
pub(crate) async fn analyze_outgrown(connection: &Connection) -> Result<(), Failure> {
    for row in &connection.query(OUTGROWN, &[]).await? {
        let table: &str = Cells::of(row).get()?;
        connection.execute(&format!("ANALYZE redrive.{table}")).await?;
    }
    Ok(())
}
