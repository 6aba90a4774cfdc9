//! The classes of lanes that have work waiting.

use redrive_core::{Class, Dependency, Lane, TenantId};
use redrive_store::LaneDue;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::{Cells, class_code};
use crate::connection::Connection;
use crate::failure::{Failure, understood};

/// Skips along the index of due work from class to class of each lane: one probe for each, whatever its backlog.
const LANES: &str = "
WITH RECURSIVE lanes AS (
    (
        SELECT tenant, dependency, class, due_at, 1 AS place FROM redrive.live
        WHERE lease_until IS NULL AND (tenant, dependency, class) > ($1, $2, $3::smallint)
        ORDER BY tenant, dependency, class, due_at
        LIMIT 1
    )
    UNION ALL
    SELECT next.tenant, next.dependency, next.class, next.due_at, lanes.place + 1
    FROM lanes CROSS JOIN LATERAL (
        SELECT tenant, dependency, class, due_at FROM redrive.live
        WHERE lease_until IS NULL AND (tenant, dependency, class) > (lanes.tenant, lanes.dependency, lanes.class)
        ORDER BY tenant, dependency, class, due_at
        LIMIT 1
    ) AS next
    WHERE lanes.place < $4
)
SELECT tenant, dependency, class, due_at FROM lanes ORDER BY place";

pub(crate) async fn pending_lanes(
    connection: &Connection,
    after: Option<&(Lane, Class)>,
    limit: usize,
) -> Result<Vec<LaneDue>, Failure> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let (tenant, dependency, class) = after
        .map_or(("", "", -1), |(lane, class)| (lane.tenant.as_str(), lane.dependency.as_str(), class_code(*class)));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = connection
        .query(LANES, &[(&tenant, Type::TEXT), (&dependency, Type::TEXT), (&class, Type::INT2), (&limit, Type::INT8)])
        .await?;
    Ok(rows.iter().filter_map(|row| understood(read(row))).collect())
}

fn read(row: &Row) -> Result<LaneDue, Failure> {
    let mut cells = Cells::of(row);
    Ok(LaneDue { lane: read_lane(&mut cells)?, class: cells.class()?, next_due: cells.optional_timestamp()? })
}

/// Reads tenant and dependency.
pub(crate) fn read_lane(cells: &mut Cells<'_>) -> Result<Lane, Failure> {
    let tenant = cells.parsed(|text| TenantId::try_new(text).ok())?;
    let dependency = cells.parsed(|text| Dependency::try_new(text).ok())?;
    Ok(Lane { tenant, dependency })
}
