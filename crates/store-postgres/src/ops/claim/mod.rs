//! Leasing due tasks.
//!
//! `rooms` claims for all classes of lanes that have room. `known` claims tasks that an index outside of the database
//! names. `around` claims the rest when a row makes such a statement fail. A claim never waits for a lock: a row that
//! another process is claiming is skipped.

mod around;
mod known;
mod rooms;

pub(crate) use around::{claim, claim_known};

use redrive_store::ClaimedTask;
use tokio_postgres::Row;

use crate::codec::{
    Cells, LEASE_UNTIL_COLUMN, LIVE_TASK_COLUMN_COUNT, REQUEST_COLUMN_COUNT, TOKEN_COLUMN, TaskRow, request,
};
use crate::ops::set_aside::{Aside, Damaged, SeenTask, readable};
use crate::postgres_error::PostgresError;

/// The part of a claim that leases the picked rows and returns them. A lease whose end would overflow ends at the
/// highest time. It is an INSERT whose row always exists already, because an UPDATE would need a join to the picked
/// rows: the planner may believe that the queue is small, and scan all of it. Only the required columns are
/// inserted.
macro_rules! lease_and_answer {
    () => {
        concat!(
            ", leased AS (
                 INSERT INTO redrive.live (
                     tenant, id, due_at, token, attempt_number, attempts_before, run, run_started_at, deadline_at,
                     attempt_timeout_ms, policy_version, cancel_requested, dependency, policy
                 )
                 SELECT DISTINCT ON (tenant, id)
                     tenant, id, due_at, token, attempt_number, attempts_before, run, run_started_at, deadline_at,
                     attempt_timeout_ms, policy_version, cancel_requested, dependency, policy
                 FROM picked
                 ORDER BY tenant, id
                 ON CONFLICT (tenant, id) DO UPDATE SET
                     token = live.token + 1, attempt_number = live.attempt_number + 1, node = $1, lease_since = $2,
                     lease_until = greatest($2, live.due_at)
                         + least(live.attempt_timeout_ms, 9223372036854775807 - greatest($2, live.due_at) - $3) + $3
                 RETURNING *
             ), counted AS (
                 INSERT INTO redrive.task_counts (tenant, policy, policy_version, status, tasks)
                 SELECT tenant, policy, policy_version, status, step * count(*)
                 FROM leased CROSS JOIN (VALUES (2, -1), (3, 1)) AS change (status, step)
                 GROUP BY tenant, policy, policy_version, status, step
             )
             SELECT ",
            live_task!(),
            ", ",
            request_columns!(),
            ", live.tenant, live.id, live.dependency, live.class
              FROM leased AS live
              LEFT JOIN LATERAL (
                  SELECT * FROM redrive.tasks WHERE tasks.tenant = live.tenant AND tasks.id = live.id LIMIT 1
              ) AS tasks ON true"
        )
    };
}

use lease_and_answer;

/// Whether the next attempt of a row of `live` is the last of its run. The row in `tasks` is read only if `live` does
/// not have the maximum number of attempts.
macro_rules! is_last {
    () => {
        "live.attempt_number - live.attempts_before + 1 >= coalesce(live.max_attempts, (
             SELECT tasks.max_attempts FROM redrive.tasks WHERE tasks.tenant = live.tenant AND tasks.id = live.id
         ))"
    };
}
use is_last;

/// The claiming process, and where it sets unreadable rows aside.
#[derive(Clone, Copy)]
pub(crate) struct Claimant<'a> {
    pub(crate) node: &'a str,
    pub(crate) aside: &'a Aside,
}

/// The tasks that a claim leased.
#[derive(Default)]
struct Leased {
    /// The tasks, each with the index of its row.
    claimed: Vec<(usize, ClaimedTask)>,
    damaged: Vec<Damaged>,
}

/// Where the additional columns of `live` start that every claim returns.
const LIVE_COLUMNS: usize = LIVE_TASK_COLUMN_COUNT + REQUEST_COLUMN_COUNT;

impl Leased {
    fn read(rows: &[Row]) -> Result<Self, PostgresError> {
        let mut leased = Leased::default();
        for (at, row) in rows.iter().enumerate() {
            let claimed = readable(read(row), &mut leased.damaged, |failure| damaged(row, true, failure))?;
            leased.claimed.extend(claimed.map(|claimed| (at, claimed)));
        }
        Ok(leased)
    }
}

/// The unreadable task of a row that ends with tenant and id of `live`: its row in `tasks` may be missing.
pub(crate) fn damaged(row: &Row, is_claimed: bool, failure: &PostgresError) -> Result<Damaged, PostgresError> {
    let mut cells = Cells::from(row, LIVE_COLUMNS);
    let (tenant, id): (&str, _) = (cells.get()?, cells.get()?);
    let token = Cells::from(row, TOKEN_COLUMN).get()?;
    let lease_until = Cells::from(row, LEASE_UNTIL_COLUMN).get()?;
    let seen = SeenTask { id, token, lease_until, is_claimed, is_refused: false };
    Ok(Damaged::task(tenant, seen, failure))
}

/// Reads a task with its lease and its request.
pub(crate) fn read(row: &Row) -> Result<ClaimedTask, PostgresError> {
    let TaskRow { task, lease, .. } = TaskRow::read(row)?;
    let place = |what: &dyn std::fmt::Display| PostgresError::corrupt(format_args!("task {}", task.id), what);
    let request = request(&mut Cells::from(row, LIVE_TASK_COLUMN_COUNT)).map_err(|failure| place(&failure))?;
    let lease = lease.ok_or_else(|| place(&"is claimed without a lease"))?;
    Ok(ClaimedTask { task, request: request.into(), lease })
}
