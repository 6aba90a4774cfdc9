//! Records of tasks that `redrive.enqueue` made without a notification, in the table `redrive.untold`.

use redrive_core::Class;
use redrive_store::LaneDue;
use tokio_postgres::Row;

use crate::codec::Cells;
use crate::connection::Connection;
use crate::ops::pending_lanes::read_lane;
use crate::postgres_error::PostgresError;

/// Takes records. Those that another process is taking are skipped.
const TAKE: &str = "
WITH taken AS (
    DELETE FROM redrive.untold
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM redrive.untold LIMIT 10000 FOR UPDATE SKIP LOCKED))
    RETURNING tenant, dependency, due_at
)
SELECT tenant, dependency, min(due_at), count(*) FROM taken GROUP BY tenant, dependency";

/// The records that were taken.
#[derive(Default)]
pub(crate) struct UnnotifiedTasks {
    pub(crate) lanes: Vec<LaneDue>,
    /// Whether some could not be read.
    pub(crate) is_damaged: bool,
    /// Whether there may be more.
    pub(crate) is_more: bool,
}

/// Takes the records: from now on this process must claim their tasks.
pub(crate) async fn take(connection: &Connection) -> Result<UnnotifiedTasks, PostgresError> {
    const MOST: i64 = 10_000;
    let rows = connection.query(TAKE, &[]).await?;
    let mut unnotified = UnnotifiedTasks::default();
    let mut notes = 0;
    for row in &rows {
        match read(row) {
            Ok((lane, count)) => {
                unnotified.lanes.push(lane);
                notes += count;
            }
            Err(failure) if failure.is_about_a_value() => unnotified.is_damaged = true,
            Err(failure) => return Err(failure),
        }
    }
    unnotified.is_more = notes >= MOST;
    Ok(unnotified)
}

fn read(row: &Row) -> Result<(LaneDue, i64), PostgresError> {
    let mut cells = Cells::of(row);
    let lane = LaneDue { lane: read_lane(&mut cells)?, class: Class::First, next_due: Some(cells.timestamp()?) };
    Ok((lane, cells.get()?))
}
