//! Leases that ran out.

use redrive_core::Timestamp;
use redrive_store::Claimed;
use tokio_postgres::types::Type;

use crate::codec::{live_task, millis, request_columns};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::ops::claim;

/// Follows the index of what is leased, from the lease that ran out first.
const EXPIRED: &str = concat!(
    "SELECT ",
    live_task!(),
    ", ",
    request_columns!(),
    " FROM (
          SELECT * FROM redrive.live
          WHERE lease_until IS NOT NULL AND lease_until <= $1
          ORDER BY lease_until
          LIMIT $2
      ) AS live
      JOIN redrive.tasks ON tasks.tenant = live.tenant AND tasks.id = live.id
      ORDER BY live.lease_until, live.id"
);

pub(crate) async fn expired(connection: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Claimed>, Failure> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = connection.query(EXPIRED, &[(&millis(now), Type::INT8), (&limit, Type::INT8)]).await?;
    rows.iter().map(claim::read).collect()
}
