//! The classes of lanes that have pending tasks.

use redrive_core::{Class, Dependency, Lane, TenantId, Timestamp};
use redrive_store::LaneDue;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::{Cells, class_code};
use crate::connection::Connection;
use crate::ops::set_aside::{AT_ONCE, Aside, Damaged, SeenTask};
use crate::postgres_error::PostgresError;

/// Skips along the index of due tasks from class to class of each lane: one probe for each, whatever its backlog.
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
    aside: &Aside,
    after: Option<&(Lane, Class)>,
    limit: usize,
) -> Result<Vec<LaneDue>, PostgresError> {
    let mut cursor = after.map_or(LaneKey(String::new(), String::new(), -1), |(lane, class)| {
        LaneKey(lane.tenant.to_string(), lane.dependency.to_string(), class_code(*class))
    });
    let (mut lanes, mut damaged) = (Vec::new(), Vec::new());
    for _ in 0..PAGES {
        let wanted = limit - lanes.len();
        if wanted == 0 {
            break;
        }
        let rows = next(connection, &cursor, wanted).await?;
        for row in &rows {
            match read(row) {
                Err(failure) if failure.is_about_a_value() && damaged.len() < AT_ONCE => {
                    damaged.extend(first_of(connection, row, &failure).await?);
                }
                Err(failure) if failure.is_about_a_value() => {}
                lane => lanes.push(lane?),
            }
        }
        // Unreadable rows are skipped: a page that is not full would look like the last one.
        match rows.last() {
            Some(last) if rows.len() == wanted => cursor = LaneKey::of(last)?,
            _ => break,
        }
    }
    aside.put_or_warn(connection, &damaged).await;
    Ok(lanes)
}

/// The most pages that are read because some of their rows cannot be read.
const PAGES: usize = 20;

/// A class of a lane: tenant, dependency and class code as stored in the table. The scan continues after one.
struct LaneKey(String, String, i16);

impl LaneKey {
    fn of(row: &Row) -> Result<Self, PostgresError> {
        let mut cells = Cells::of(row);
        Ok(LaneKey(cells.get()?, cells.get()?, cells.get()?))
    }
}

async fn next(connection: &Connection, after: &LaneKey, limit: usize) -> Result<Vec<Row>, PostgresError> {
    let (LaneKey(tenant, dependency, class), limit) = (after, i64::try_from(limit).unwrap_or(i64::MAX));
    connection
        .query(LANES, &[(&tenant, Type::TEXT), (&dependency, Type::TEXT), (&class, Type::INT2), (&limit, Type::INT8)])
        .await
}

/// The first tasks of an unreadable lane or class. The others are found after these are set aside.
const FIRST: &str = "
SELECT id, token FROM redrive.live
WHERE tenant = $1 AND dependency = $2 AND class = $3 AND lease_until IS NULL
ORDER BY due_at, id
LIMIT 500";

async fn first_of(connection: &Connection, lane: &Row, problem: &PostgresError) -> Result<Vec<Damaged>, PostgresError> {
    let LaneKey(tenant, dependency, class) = LaneKey::of(lane)?;
    let rows =
        connection.query(FIRST, &[(&tenant, Type::TEXT), (&dependency, Type::TEXT), (&class, Type::INT2)]).await?;
    rows.iter()
        .map(|row| {
            let mut cells = Cells::of(row);
            let (id, token) = (cells.get()?, cells.get()?);
            let seen = SeenTask { id, token, lease_until: None, is_claimed: false, is_refused: false };
            Ok(Damaged::task(&tenant, seen, problem))
        })
        .collect()
}

fn read(row: &Row) -> Result<LaneDue, PostgresError> {
    let mut cells = Cells::of(row);
    let (lane, class) = (read_lane(&mut cells)?, cells.class()?);
    // An invalid due time belongs to a task that a claim sets aside.
    let next_due = cells.optional_timestamp().unwrap_or(Some(Timestamp::default()));
    Ok(LaneDue { lane, class, next_due })
}

/// Reads tenant and dependency.
pub(crate) fn read_lane(cells: &mut Cells<'_>) -> Result<Lane, PostgresError> {
    let tenant = cells.parsed(|text| TenantId::try_new(text).ok())?;
    let dependency = cells.parsed(|text| Dependency::try_new(text).ok())?;
    Ok(Lane { tenant, dependency })
}
