//! Finding expired leases.

use std::time::Duration;

use redrive_core::Timestamp;
use redrive_store::ClaimedTask;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::{
    Cells, LEASE_UNTIL_COLUMN, LIVE_TASK_COLUMN_COUNT, REQUEST_COLUMN_COUNT, Uuid, live_task, millis, request_columns,
};
use crate::connection::Connection;
use crate::floors::{Floors, Index};
use crate::ops::claim;
use crate::ops::set_aside::{Aside, readable};
use crate::postgres_error::PostgresError;

/// The most pages that are read because some of their rows cannot be read.
const PAGES: usize = 20;

/// How long a claim takes at most before its lease is visible to others. The lease ends after the claim began. A claim
/// that took longer, because a synchronous standby was away, is found by the next scan from the beginning.
const SLOW_COMMIT: Duration = Duration::from_secs(60);

/// Scans the index of leases from the earliest end on, after a place. A lease that never ends marks a task that is set
/// aside.
const EXPIRED: &str = concat!(
    "SELECT ",
    live_task!(),
    ", ",
    request_columns!(),
    ", live.tenant, live.id
      FROM (
          SELECT * FROM redrive.live
          WHERE lease_until IS NOT NULL AND lease_until <= $1 AND (lease_until, id) > ($3, $4)
            AND lease_until < 9223372036854775807
          ORDER BY lease_until, id
          LIMIT $2
      ) AS live
      LEFT JOIN LATERAL (
          SELECT * FROM redrive.tasks WHERE tasks.tenant = live.tenant AND tasks.id = live.id LIMIT 1
      ) AS tasks ON true
      ORDER BY live.lease_until, live.id"
);

pub(crate) async fn expired_leases(
    connection: &Connection,
    aside: &Aside,
    floors: &Floors,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<ClaimedTask>, PostgresError> {
    let (look, latest) = (floors.look([Index::Leases]), millis(now.before(SLOW_COMMIT)));
    let mut after = (look.floor_by(&Index::Leases, latest), Uuid::LOWEST);
    let (mut expired, mut damaged, mut first) = (Vec::new(), Vec::new(), None);
    for _ in 0..PAGES {
        let wanted = limit - expired.len();
        let most = i64::try_from(wanted).unwrap_or(i64::MAX);
        let place = [(&after.0 as _, Type::INT8), (&after.1 as _, Type::UUID)];
        let [since, id] = place;
        let rows = connection.query(EXPIRED, &[(&millis(now), Type::INT8), (&most, Type::INT8), since, id]).await?;
        if let (None, Some(row)) = (first, rows.first()) {
            first = Some(place_of(row)?.0);
        }
        for row in &rows {
            let note = |failure: &PostgresError| claim::damaged(row, false, failure);
            expired.extend(readable(claim::read(row), &mut damaged, note)?);
        }
        // Unreadable rows are skipped: a page that is not full would look like the last one.
        match rows.last() {
            Some(last) if rows.len() == wanted && expired.len() < limit => after = place_of(last)?,
            _ => break,
        }
    }
    aside.put_or_warn(connection, &damaged).await;
    if limit > 0 {
        look.answer(Index::Leases, first.unwrap_or(latest).min(latest));
    }
    Ok(expired)
}

fn place_of(row: &Row) -> Result<(i64, Uuid), PostgresError> {
    let id = LIVE_TASK_COLUMN_COUNT + REQUEST_COLUMN_COUNT + 1;
    let (mut until, mut id) = (Cells::from(row, LEASE_UNTIL_COLUMN), Cells::from(row, id));
    Ok((until.get()?, id.get()?))
}
