//! Reading all pending tasks, page by page, to fill an index outside of the database.

use redrive_core::{TaskId, TenantId};
use redrive_store::{PendingTask, Token};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::{Cells, Uuid};
use crate::connection::Connection;
use crate::ops::pending_lanes::read_lane;
use crate::ops::set_aside::{Aside, Damaged, SeenTask, readable};
use crate::postgres_error::PostgresError;

/// Follows the primary key. The condition is written so that the planner does not choose the index of due tasks, which
/// it would read from end to end for every page.
const WAITING: &str = "
SELECT tenant, dependency, class, id, token, due_at FROM redrive.live
WHERE (tenant, id) > ($1, $2) AND num_nulls(lease_until) = 1
ORDER BY tenant, id
LIMIT $3";

/// The most pages that are read because some of their rows cannot be read.
const PAGES: usize = 20;

pub(crate) async fn waiting(
    connection: &Connection,
    aside: &Aside,
    after: Option<&(TenantId, TaskId)>,
    limit: usize,
) -> Result<Vec<PendingTask>, PostgresError> {
    let (mut tenant, mut id) =
        after.map_or((String::new(), Uuid::LOWEST), |(tenant, id)| (tenant.to_string(), Uuid::from(*id)));
    let (mut waiting, mut damaged) = (Vec::new(), Vec::new());
    for _ in 0..PAGES {
        let wanted = limit - waiting.len();
        let most = i64::try_from(wanted).unwrap_or(i64::MAX);
        let rows = connection.query(WAITING, &[(&tenant, Type::TEXT), (&id, Type::UUID), (&most, Type::INT8)]).await?;
        for row in &rows {
            waiting.extend(readable(read(row), &mut damaged, |failure| damaged_task(row, failure))?);
        }
        // Unreadable rows are skipped: an empty page would look like the end.
        match rows.last() {
            Some(last) if rows.len() == wanted && waiting.len() < limit => {
                (tenant, id) = (Cells::of(last).get()?, Cells::from(last, ID).get()?);
            }
            _ => break,
        }
    }
    aside.put_or_warn(connection, &damaged).await;
    Ok(waiting)
}

/// The position of the id column.
const ID: usize = 3;

fn read(row: &Row) -> Result<PendingTask, PostgresError> {
    let mut cells = Cells::of(row);
    Ok(PendingTask {
        lane: read_lane(&mut cells)?,
        class: cells.class()?,
        id: cells.task_id()?,
        token: Token(cells.unsigned()?),
        due: cells.timestamp()?,
    })
}

fn damaged_task(row: &Row, failure: &PostgresError) -> Result<Damaged, PostgresError> {
    let tenant: &str = Cells::of(row).get()?;
    let mut cells = Cells::from(row, ID);
    let (id, token) = (cells.get()?, cells.get()?);
    let seen = SeenTask { id, token, lease_until: None, is_claimed: false, is_refused: false };
    Ok(Damaged::task(tenant, seen, failure))
}
