//! The lanes that have work waiting.

use redrive_core::{Dependency, Lane, TenantId};
use redrive_store::LaneDue;
use tokio_postgres::types::Type;

use crate::codec::Cells;
use crate::connection::Connection;
use crate::failure::Failure;

/// Skips along the index of due work from lane to lane: one probe for each, whatever its backlog.
const LANES: &str = "
WITH RECURSIVE lanes AS (
    (
        SELECT tenant, dependency, due_at, 1 AS place FROM redrive.live
        WHERE lease_until IS NULL AND (tenant, dependency) > ($1, $2)
        ORDER BY tenant, dependency, due_at
        LIMIT 1
    )
    UNION ALL
    SELECT next.tenant, next.dependency, next.due_at, lanes.place + 1
    FROM lanes CROSS JOIN LATERAL (
        SELECT tenant, dependency, due_at FROM redrive.live
        WHERE lease_until IS NULL AND (tenant, dependency) > (lanes.tenant, lanes.dependency)
        ORDER BY tenant, dependency, due_at
        LIMIT 1
    ) AS next
    WHERE lanes.place < $3
)
SELECT tenant, dependency, due_at FROM lanes ORDER BY place";

pub(crate) async fn pending_lanes(
    connection: &Connection,
    after: Option<&Lane>,
    limit: usize,
) -> Result<Vec<LaneDue>, Failure> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let (tenant, dependency) = after.map_or(("", ""), |lane| (lane.tenant.as_str(), lane.dependency.as_str()));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows =
        connection.query(LANES, &[(&tenant, Type::TEXT), (&dependency, Type::TEXT), (&limit, Type::INT8)]).await?;
    rows.iter()
        .map(|row| {
            let mut cells = Cells::of(row);
            let lane = read_lane(&mut cells)?;
            Ok(LaneDue { lane, next_due: cells.optional_timestamp()? })
        })
        .collect()
}

/// Reads tenant and dependency.
pub(crate) fn read_lane(cells: &mut Cells<'_>) -> Result<Lane, Failure> {
    let tenant = cells.parsed(|text| TenantId::try_new(text).ok())?;
    let dependency = cells.parsed(|text| Dependency::try_new(text).ok())?;
    Ok(Lane { tenant, dependency })
}
