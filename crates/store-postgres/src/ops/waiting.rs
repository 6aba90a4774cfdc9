//! Every pending task, page by page: what an index that is kept elsewhere is filled from.

use redrive_core::{TaskId, TenantId};
use redrive_store::{Token, Waiting};
use tokio_postgres::types::Type;

use crate::codec::{Cells, Uuid};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::ops::pending_lanes::read_lane;

/// Follows the key. The condition is written so that the index of what is due does not seem to help: it would be read from
/// end to end for every page.
const WAITING: &str = "
SELECT tenant, dependency, class, id, token, due_at FROM redrive.live
WHERE (tenant, id) > ($1, $2) AND num_nulls(lease_until) = 1
ORDER BY tenant, id
LIMIT $3";

pub(crate) async fn waiting(
    connection: &Connection,
    after: Option<&(TenantId, TaskId)>,
    limit: usize,
) -> Result<Vec<Waiting>, Failure> {
    let (tenant, id) = after.map_or(("", Uuid::LOWEST), |(tenant, id)| (tenant.as_str(), Uuid::from(*id)));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = connection.query(WAITING, &[(&tenant, Type::TEXT), (&id, Type::UUID), (&limit, Type::INT8)]).await?;
    rows.iter()
        .map(|row| {
            let mut cells = Cells::of(row);
            Ok(Waiting {
                lane: read_lane(&mut cells)?,
                class: cells.class()?,
                id: cells.task_id()?,
                token: Token(cells.unsigned()?),
                due: cells.timestamp()?,
            })
        })
        .collect()
}
