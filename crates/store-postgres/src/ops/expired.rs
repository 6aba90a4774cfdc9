//! Leases that ran out.

use redrive_core::Timestamp;
use redrive_store::Claimed;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::{Cells, LIVE_TASK_COLUMN_COUNT, Uuid, live_task, millis, request_columns};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::ops::claim;

/// The most pages that are read because nothing on them can be understood.
const PAGES: usize = 20;

/// Follows the index of what is leased, from the lease that ran out first, behind a place.
const EXPIRED: &str = concat!(
    "SELECT ",
    live_task!(),
    ", ",
    request_columns!(),
    " FROM (
          SELECT * FROM redrive.live
          WHERE lease_until IS NOT NULL AND lease_until <= $1 AND (lease_until, id) > ($3, $4)
          ORDER BY lease_until, id
          LIMIT $2
      ) AS live
      JOIN LATERAL (
          SELECT * FROM redrive.tasks WHERE tasks.tenant = live.tenant AND tasks.id = live.id LIMIT 1
      ) AS tasks ON true
      ORDER BY live.lease_until, live.id"
);

pub(crate) async fn expired(connection: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Claimed>, Failure> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let (mut expired, mut after) = (Vec::new(), (i64::MIN, Uuid::LOWEST));
    for _ in 0..PAGES {
        let place = [(&after.0 as _, Type::INT8), (&after.1 as _, Type::UUID)];
        let [since, id] = place;
        let rows = connection.query(EXPIRED, &[(&millis(now), Type::INT8), (&most, Type::INT8), since, id]).await?;
        expired.extend(claim::readable(&rows));
        // What was read is settled before more is asked for, and is gone then. What cannot be is passed over.
        match rows.last() {
            Some(last) if expired.is_empty() && rows.len() == limit => after = place_of(last)?,
            _ => break,
        }
    }
    Ok(expired)
}

fn place_of(row: &Row) -> Result<(i64, Uuid), Failure> {
    let (mut until, mut id) = (Cells::from(row, LIVE_TASK_COLUMN_COUNT - 1), Cells::from(row, 1));
    Ok((until.get()?, id.get()?))
}
