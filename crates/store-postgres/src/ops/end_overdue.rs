//! Ending pending tasks whose deadline has passed: one statement for all of them.
//!
//! Several processes may be at it: a row that another one is just ending, or claiming, is skipped. The next deadline is asked
//! right behind, in a statement of its own, which sees what this one did.

use std::time::Duration;

use redrive_core::{Reason, Status, Task, Timestamp};
use redrive_store::Overdue;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::{Cells, LIVE_TASK_COLUMN_COUNT, TOKEN_COLUMN, TaskRow, live_task, millis, status_code};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::ops::set_aside::{Aside, Damaged, SeenTask, readable};

/// Rows are found along the index of deadlines. As in a cancel, the line of the end has a token of its own, above that of
/// every claim: nothing was sent under it. Its number says so to a replay, which gives the token back.
const END: &str = concat!(
    "WITH overdue AS MATERIALIZED (
         SELECT * FROM redrive.live
         WHERE lease_until IS NULL AND deadline_at <= $1
         ORDER BY deadline_at, id
         LIMIT $2
         FOR UPDATE SKIP LOCKED
     ), gone AS MATERIALIZED (
         SELECT redrive.drop_live(array_agg(tenant), array_agg(id)) FROM overdue
     ), logged AS (
         INSERT INTO redrive.log (
             tenant, id, token, number, status, reason, ended_at, attempt_number, attempts_before, run, run_started_at,
             deadline_at, task_backoff_us, dns_failures, cancel_requested, last_error_kind, last_error_message
         )
         SELECT tenant, id, token + 1, -1, 6, $3, $1, attempt_number, attempts_before, run, run_started_at,
                deadline_at, backoff_us, nullif(dns_failures, 0), cancel_requested, error_kind, error_message
         FROM overdue
     ), dead AS (
         INSERT INTO redrive.dead_letters (tenant, id, ended_at, run)
         SELECT tenant, id, $1, run FROM overdue
     ), counted AS (
         INSERT INTO redrive.task_counts (tenant, policy, policy_version, status, tasks)
         SELECT tenant, policy, policy_version, change.status, sum(change.step)
         FROM overdue CROSS JOIN (VALUES (2, -1), (6, 1)) AS change (status, step)
         GROUP BY 1, 2, 3, 4
     )
     SELECT ",
    live_task!(),
    " FROM overdue AS live
      JOIN LATERAL (
          SELECT * FROM redrive.tasks WHERE tasks.tenant = live.tenant AND tasks.id = live.id LIMIT 1
      ) AS tasks ON true
      WHERE (SELECT count(*) FROM gone) = 1"
);

const NEXT: &str = "
SELECT deadline_at FROM redrive.live WHERE lease_until IS NULL ORDER BY deadline_at, id LIMIT 1";

/// How long what is overdue and locked by another transaction is left to it.
const LOCKED_FOR: Duration = Duration::from_millis(50);

pub(crate) async fn end_overdue(
    connection: &Connection,
    aside: &Aside,
    now: Timestamp,
    limit: usize,
) -> Result<Overdue, Failure> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let look = [(&millis(now) as _, Type::INT8), (&most as _, Type::INT8)];
    let (rows, next) = connection.query_and_then((OVERDUE, &look), (NEXT, &[])).await?;
    if rows.is_empty() {
        return Ok(Overdue { ended: Vec::new(), next_deadline: next_deadline(next, now) });
    }
    let mut damaged = Vec::new();
    for row in &rows {
        readable(TaskRow::read(row), &mut damaged, |failure| damaged_task(row, failure))?;
    }
    // A task that makes no sense must not end: whoever understands it may find that it is not overdue.
    aside.put(connection, &damaged).await?;
    // Not more than was looked at: others that make no sense may stand behind these.
    match end(connection, now, rows.len() - damaged.len()).await {
        Err(failure) if failure.is_about_a_row() => end_one_by_one(connection, aside, now, rows.len()).await,
        overdue => overdue,
    }
}

/// PostgreSQL refuses to end one of them: each is ended alone, and the one is set aside.
async fn end_one_by_one(
    connection: &Connection,
    aside: &Aside,
    now: Timestamp,
    tasks: usize,
) -> Result<Overdue, Failure> {
    let mut overdue = Overdue { ended: Vec::new(), next_deadline: Some(now) };
    for _ in 0..tasks {
        match end(connection, now, 1).await {
            Ok(step) => {
                overdue.ended.extend(step.ended);
                overdue.next_deadline = step.next_deadline;
            }
            Err(failure) if failure.is_about_a_row() && !failure.is_damaged_page() => {
                let first = connection.query(OVERDUE, &[(&millis(now), Type::INT8), (&1_i64, Type::INT8)]).await?;
                let refused = first.iter().map(|row| damaged_task(row, &failure));
                aside.put(connection, &refused.collect::<Result<Vec<_>, _>>()?).await?;
            }
            Err(failure) if overdue.ended.is_empty() => return Err(failure),
            Err(_) => break,
        }
    }
    Ok(overdue)
}

/// The tasks that the next statement ends, unless another process is just at them.
const OVERDUE: &str = concat!(
    "SELECT ",
    live_task!(),
    ", live.tenant, live.id
     FROM (
         SELECT * FROM redrive.live
         WHERE lease_until IS NULL AND deadline_at <= $1
         ORDER BY deadline_at, id
         LIMIT $2
     ) AS live
     LEFT JOIN LATERAL (
         SELECT * FROM redrive.tasks WHERE tasks.tenant = live.tenant AND tasks.id = live.id LIMIT 1
     ) AS tasks ON true"
);

fn damaged_task(row: &Row, failure: &Failure) -> Result<Damaged, Failure> {
    let mut cells = Cells::from(row, LIVE_TASK_COLUMN_COUNT);
    let (tenant, id): (&str, _) = (cells.get()?, cells.get()?);
    let token = Cells::from(row, TOKEN_COLUMN).get()?;
    let seen = SeenTask { id, token, lease_until: None, is_claimed: false, is_refused: false };
    Ok(Damaged::task(tenant, seen, failure))
}

async fn end(connection: &Connection, now: Timestamp, limit: usize) -> Result<Overdue, Failure> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let reason = Reason::Deadline;
    let end = [(&millis(now) as _, Type::INT8), (&most as _, Type::INT8), (&reason.as_str() as _, Type::TEXT)];
    let (rows, next) = connection.query_and_then((END, &end), (NEXT, &[])).await?;
    // A task that was damaged since it was looked at has ended, and is found by whoever reads it.
    let mut ended: Vec<Task> = rows.iter().filter_map(|row| TaskRow::read(row).ok()).map(|row| row.task).collect();
    ended.sort_by_key(|task| (task.deadline_at, task.id));
    for task in &mut ended {
        task.status = Status::Exhausted;
        task.reason = Some(reason);
        task.next_attempt_at = None;
        task.ended_at = Some(now);
    }
    let next_deadline = next_deadline(next, now);
    // What is overdue and was left is locked by another transaction: asking at once would find the same.
    let is_locked = rows.len() < limit && next_deadline.is_some_and(|deadline| deadline <= now);
    let next_deadline = if is_locked { Some(now.after(LOCKED_FOR)) } else { next_deadline };
    Ok(Overdue { ended, next_deadline })
}

/// What was ended must be answered. Where the next deadline is not known, or makes no sense, the next look finds it.
fn next_deadline(next: Result<Vec<Row>, Failure>, now: Timestamp) -> Option<Timestamp> {
    let Ok(rows) = next else { return Some(now) };
    rows.first().and_then(|row| Cells::of(row).optional_timestamp().unwrap_or(Some(now)))
}

/// The numbers that the statement spells out.
const _: () = assert!(status_code(Status::Pending) == 2 && status_code(Status::Exhausted) == 6);
