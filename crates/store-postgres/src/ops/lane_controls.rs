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

const STORED: &str = "SELECT controls FROM redrive.lane_controls WHERE tenant = $1 AND dependency = $2";

const ADD: &str = "
INSERT INTO redrive.lane_controls (tenant, dependency, controls) VALUES ($1, $2, $3)
ON CONFLICT (tenant, dependency) DO NOTHING
RETURNING true";

const CHANGE: &str = "
UPDATE redrive.lane_controls SET controls = $4 WHERE tenant = $1 AND dependency = $2 AND controls = $3
RETURNING true";

const REMOVE: &str = "
DELETE FROM redrive.lane_controls WHERE tenant = $1 AND dependency = $2 AND controls = $3
RETURNING true";

/// Replaces the controls of a lane, given as JSON, if they are the expected ones. They are compared by value here, and the
/// statement that writes compares the text that was read: if another process has changed it, no row is written.
pub(crate) async fn replace(
    connection: &Connection,
    lane: &Lane,
    expected: &Controls,
    json: Option<&str>,
) -> Result<bool, PostgresError> {
    let (tenant, dependency) = (lane.tenant.as_str(), lane.dependency.as_str());
    let (tenant, dependency) = ((&tenant as _, Type::TEXT), (&dependency as _, Type::TEXT));
    let rows = connection.query(STORED, &[tenant.clone(), dependency.clone()]).await?;
    let stored: Option<String> = rows.first().map(|row| Cells::of(row).get()).transpose()?;
    let controls: Option<Controls> = match &stored {
        Some(text) => serde_json::from_str(text).ok(),
        None => Some(Controls::default()),
    };
    let is_unreadable = controls.is_none();
    if controls.unwrap_or_default() != *expected {
        return Ok(false);
    }
    if is_unreadable {
        tracing::warn!(
            tenant = lane.tenant.as_str(),
            dependency = lane.dependency.as_str(),
            "the controls of a lane cannot be understood and are replaced"
        );
    }
    let written = match (&stored, json) {
        (None, None) => return Ok(true),
        (None, Some(json)) => connection.query(ADD, &[tenant, dependency, (&json, Type::TEXT)]).await?,
        (Some(stored), None) => connection.query(REMOVE, &[tenant, dependency, (stored, Type::TEXT)]).await?,
        (Some(stored), Some(json)) => {
            connection.query(CHANGE, &[tenant, dependency, (stored, Type::TEXT), (&json, Type::TEXT)]).await?
        }
    };
    Ok(!written.is_empty())
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
