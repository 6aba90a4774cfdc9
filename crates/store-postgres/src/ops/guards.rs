//! The sums of what the guards of all processes count.

use redrive_core::Timestamp;
use redrive_store::{Hold, Tally, Totals};
use tokio_postgres::types::Type;

use crate::codec::{Cells, millis};
use crate::connection::Connection;
use crate::ops::pending_lanes::read_lane;
use crate::postgres_error::PostgresError;

/// Adds tallies and deletes the seconds before `since`, which are in no window any more.
const TALLY: &str = "
WITH given AS MATERIALIZED (
    SELECT * FROM unnest(
        $1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]
    ) WITH ORDINALITY AS given (tenant, dependency, second, first, retries, failures, place)
), old AS (
    DELETE FROM redrive.guard_tallies USING (SELECT DISTINCT tenant, dependency FROM given) AS lanes
    WHERE guard_tallies.tenant = lanes.tenant AND guard_tallies.dependency = lanes.dependency
      AND guard_tallies.second < $7
)
INSERT INTO redrive.guard_tallies AS kept (tenant, dependency, second, first, retries, failures)
SELECT tenant, dependency, second, sum(first), sum(retries), sum(failures) FROM given
WHERE second >= $7
GROUP BY tenant, dependency, second
ORDER BY tenant, dependency, second
ON CONFLICT (tenant, dependency, second) DO UPDATE SET
    first = kept.first + excluded.first, retries = kept.retries + excluded.retries,
    failures = kept.failures + excluded.failures";

const TOTALS: &str = "
SELECT coalesce(sum(first), 0)::bigint, coalesce(sum(retries), 0)::bigint, coalesce(sum(failures), 0)::bigint
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS lanes (tenant, dependency, place)
LEFT JOIN redrive.guard_tallies AS kept
  ON kept.tenant = lanes.tenant AND kept.dependency = lanes.dependency AND kept.second >= $3
GROUP BY lanes.place
ORDER BY lanes.place";

/// Runs inside a transaction.
pub(crate) async fn tally(
    connection: &Connection,
    tallies: &[Tally],
    since: Timestamp,
) -> Result<Vec<Totals>, PostgresError> {
    let number = |counted: u64| i64::try_from(counted).unwrap_or(i64::MAX);
    let tenants: Vec<&str> = tallies.iter().map(|tally| tally.lane.tenant.as_str()).collect();
    let dependencies: Vec<&str> = tallies.iter().map(|tally| tally.lane.dependency.as_str()).collect();
    let seconds: Vec<i64> = tallies.iter().map(|tally| millis(tally.at) / 1_000).collect();
    let first: Vec<i64> = tallies.iter().map(|tally| number(tally.counted.first)).collect();
    let retries: Vec<i64> = tallies.iter().map(|tally| number(tally.counted.retries)).collect();
    let failures: Vec<i64> = tallies.iter().map(|tally| number(tally.counted.failures)).collect();
    let since = millis(since) / 1_000;
    connection
        .query(
            TALLY,
            &[
                (&tenants, Type::TEXT_ARRAY),
                (&dependencies, Type::TEXT_ARRAY),
                (&seconds, Type::INT8_ARRAY),
                (&first, Type::INT8_ARRAY),
                (&retries, Type::INT8_ARRAY),
                (&failures, Type::INT8_ARRAY),
                (&since, Type::INT8),
            ],
        )
        .await?;
    let totals = [(&tenants as _, Type::TEXT_ARRAY), (&dependencies as _, Type::TEXT_ARRAY), (&since as _, Type::INT8)];
    let rows = connection.query(TOTALS, &totals).await?;
    rows.iter()
        .map(|row| {
            let mut cells = Cells::of(row);
            Ok(Totals { first: cells.unsigned()?, retries: cells.unsigned()?, failures: cells.unsigned()? })
        })
        .collect()
}

const HOLD: &str = "
INSERT INTO redrive.guard_holds AS kept (tenant, dependency, until)
SELECT tenant, dependency, max(until) FROM unnest($1::text[], $2::text[], $3::bigint[]) AS given (
    tenant, dependency, until
)
GROUP BY tenant, dependency
ORDER BY tenant, dependency
ON CONFLICT (tenant, dependency) DO UPDATE SET until = greatest(kept.until, excluded.until)";

const STANDS: &str = "
SELECT kept.until FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS lanes (tenant, dependency, place)
JOIN redrive.guard_holds AS kept ON kept.tenant = lanes.tenant AND kept.dependency = lanes.dependency
ORDER BY lanes.place";

/// Runs inside a transaction.
pub(crate) async fn hold(connection: &Connection, holds: &[Hold]) -> Result<Vec<Timestamp>, PostgresError> {
    let tenants: Vec<&str> = holds.iter().map(|hold| hold.lane.tenant.as_str()).collect();
    let dependencies: Vec<&str> = holds.iter().map(|hold| hold.lane.dependency.as_str()).collect();
    let until: Vec<i64> = holds.iter().map(|hold| millis(hold.until)).collect();
    let lanes = || [(&tenants as _, Type::TEXT_ARRAY), (&dependencies as _, Type::TEXT_ARRAY)];
    let [tenant, dependency] = lanes();
    connection.query(HOLD, &[tenant, dependency, (&until, Type::INT8_ARRAY)]).await?;
    let rows = connection.query(STANDS, &lanes()).await?;
    rows.iter().map(|row| Cells::of(row).timestamp()).collect()
}

const HELD: &str = "
SELECT tenant, dependency, until FROM redrive.guard_holds
WHERE until > $1
ORDER BY until DESC, tenant, dependency
LIMIT $2";

pub(crate) async fn held(connection: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Hold>, PostgresError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = connection.query(HELD, &[(&millis(now), Type::INT8), (&limit, Type::INT8)]).await?;
    let read = |row| {
        let mut cells = Cells::of(row);
        Ok::<_, PostgresError>(Hold { lane: read_lane(&mut cells)?, until: cells.timestamp()? })
    };
    // A hold of an unreadable lane is skipped. It expires after a while.
    Ok(rows.iter().filter_map(|row| read(row).ok()).collect())
}
