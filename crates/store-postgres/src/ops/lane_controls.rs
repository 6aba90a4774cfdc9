//! What operators have set for lanes.

use redrive_core::Lane;
use redrive_core::guards::Controls;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::Cells;
use crate::connection::Connection;
use crate::ops::lane_pages::{LaneKey, LanePages};
use crate::ops::pending_lanes::read_lane;
use crate::ops::set_aside::Aside;
use crate::postgres_error::PostgresError;

const PUT: &str = "
INSERT INTO redrive.lane_controls (tenant, dependency, controls) VALUES ($1, $2, $3)
ON CONFLICT (tenant, dependency) DO UPDATE SET controls = excluded.controls";

/// Replaces the controls of a lane, given as JSON.
pub(crate) async fn put(connection: &Connection, lane: &Lane, json: &str) -> Result<(), PostgresError> {
    let (tenant, dependency) = (lane.tenant.as_str(), lane.dependency.as_str());
    connection.query(PUT, &[(&tenant, Type::TEXT), (&dependency, Type::TEXT), (&json, Type::TEXT)]).await.map(drop)
}

const REMOVE: &str = "DELETE FROM redrive.lane_controls WHERE tenant = $1 AND dependency = $2";

/// Removes the controls of a lane.
pub(crate) async fn remove(connection: &Connection, lane: &Lane) -> Result<(), PostgresError> {
    let (tenant, dependency) = (lane.tenant.as_str(), lane.dependency.as_str());
    connection.query(REMOVE, &[(&tenant, Type::TEXT), (&dependency, Type::TEXT)]).await.map(drop)
}

/// The controls that are set, after a lane. A row that cannot be read is skipped, and is logged once.
pub(crate) async fn list(
    connection: &Connection,
    aside: &Aside,
    after: Option<&Lane>,
    limit: usize,
) -> Result<Vec<(Lane, Controls)>, PostgresError> {
    let mut pages = LanePages::new(aside, LANE_CONTROLS, after, limit);
    while let Some((after, limit)) = pages.next() {
        let rows = next(connection, after, limit).await?;
        pages.add(&rows, read)?;
    }
    Ok(pages.finish())
}

/// The kind of these rows in the log.
const LANE_CONTROLS: &str = "lane controls";

const NEXT: &str = "
SELECT tenant, dependency, controls FROM redrive.lane_controls
WHERE (tenant, dependency) > ($1, $2)
ORDER BY tenant, dependency
LIMIT $3";

async fn next(connection: &Connection, after: &LaneKey, limit: i64) -> Result<Vec<Row>, PostgresError> {
    let arguments = [(&after.tenant as _, Type::TEXT), (&after.dependency as _, Type::TEXT), (&limit as _, Type::INT8)];
    connection.query(NEXT, &arguments).await
}

fn read(row: &Row) -> Result<(Lane, Controls), PostgresError> {
    let mut cells = Cells::of(row);
    Ok((read_lane(&mut cells)?, cells.parsed(|text| serde_json::from_str(text).ok())?))
}
