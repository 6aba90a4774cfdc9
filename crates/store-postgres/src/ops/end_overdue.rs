//! Ending pending tasks whose deadline has passed: one statement for all of them.
//!
//! Several processes may be at it: a row that another one is just ending, or claiming, is skipped. The next deadline is asked
//! right behind, in a statement of its own, which sees what this one did.

use std::time::Duration;

use redrive_core::{Reason, Status, Task, Timestamp};
use redrive_store::Overdue;
use tokio_postgres::types::Type;

use crate::codec::{Cells, TaskRow, live_task, millis, status_code};
use crate::connection::Connection;
use crate::failure::{Failure, understood};

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

pub(crate) async fn end_overdue(connection: &Connection, now: Timestamp, limit: usize) -> Result<Overdue, Failure> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let reason = Reason::Deadline;
    let end = [(&millis(now) as _, Type::INT8), (&most as _, Type::INT8), (&reason.as_str() as _, Type::TEXT)];
    let (rows, next) = connection.query_and_then((END, &end), (NEXT, &[])).await?;
    let mut ended: Vec<Task> =
        rows.iter().filter_map(|row| understood(TaskRow::read(row))).map(|row| row.task).collect();
    ended.sort_by_key(|task| (task.deadline_at, task.id));
    for task in &mut ended {
        task.status = Status::Exhausted;
        task.reason = Some(reason);
        task.next_attempt_at = None;
        task.ended_at = Some(now);
    }
    // What was ended must be answered. Where the next deadline is not known, the next look finds it.
    let next_deadline = match next {
        Ok(rows) => rows.first().map_or(Ok(None), |row| Cells::of(row).optional_timestamp())?,
        Err(_) => Some(now),
    };
    // What is overdue and was left is locked by another transaction: asking at once would find the same.
    let is_locked = rows.len() < limit && next_deadline.is_some_and(|deadline| deadline <= now);
    let next_deadline = if is_locked { Some(now.after(LOCKED_FOR)) } else { next_deadline };
    Ok(Overdue { ended, next_deadline })
}

/// The numbers that the statement spells out.
const _: () = assert!(status_code(Status::Pending) == 2 && status_code(Status::Exhausted) == 6);
