//! Ending pending tasks whose deadline has passed: a scan along the index of deadlines, and one statement for the tasks
//! that it found.
//!
//! Several processes may do this at once: a row that another one is ending or claiming is skipped. A row that
//! PostgreSQL refuses to change, and that cannot be set aside either, does not affect the others.

use std::time::Duration;

use redrive_core::{Reason, Status, Task, Timestamp};
use redrive_store::Overdue;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::{Cells, LIVE_TASK_COLUMN_COUNT, TOKEN_COLUMN, TaskRow, Uuid, live_task, millis, status_code};
use crate::connection::Connection;
use crate::floors::{Floors, Index};
use crate::ops::set_aside::{Aside, Damaged, SeenTask, readable};
use crate::postgres_error::PostgresError;

/// As in a cancel, the log entry of the end has a separate token, above that of every claim, because nothing was sent
/// under it. Its number is -1, so that a replay gives the token back. `num_nulls` as in a claim of known tasks: the
/// rows are found by their key.
const END: &str = concat!(
    "WITH overdue AS MATERIALIZED (
         SELECT due.*
         FROM unnest($2::text[], $4::uuid[]) AS given (tenant, id) CROSS JOIN LATERAL (
             SELECT live.* FROM redrive.live
             WHERE live.tenant = given.tenant AND live.id = given.id AND num_nulls(live.lease_until) = 1
               AND live.deadline_at <= $1
             FOR UPDATE OF live SKIP LOCKED
         ) AS due
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
SELECT deadline_at FROM redrive.live WHERE lease_until IS NULL AND deadline_at >= $1 ORDER BY deadline_at, id LIMIT 1";

/// How long a commit of another process may take after which a task is pending and already overdue. If one takes
/// longer, the next scan from the beginning finds the task.
const SLOW_COMMIT: Duration = Duration::from_secs(60);

/// How long to wait before the next try to end an overdue task that another transaction has locked.
const LOCKED_FOR: Duration = Duration::from_millis(50);

/// The most pages of overdue tasks that are read because none of their tasks can be ended.
const PAGES: usize = 20;

pub(crate) async fn end_overdue(
    connection: &Connection,
    aside: &Aside,
    floors: &Floors,
    now: Timestamp,
    limit: usize,
) -> Result<Overdue, PostgresError> {
    let look = floors.look([Index::Overdue, Index::FirstDeadline]);
    let latest = millis(now.before(SLOW_COMMIT));
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut after = (look.floor_by(&Index::Overdue, latest), Uuid::LOWEST);
    let (mut ended, mut found, mut first) = (Vec::new(), 0, None);
    for _ in 0..PAGES {
        let place = [(&after.0 as _, Type::INT8), (&after.1 as _, Type::UUID)];
        let [since, id] = place;
        let rows = connection.query(OVERDUE, &[(&millis(now), Type::INT8), (&most, Type::INT8), since, id]).await?;
        if let (None, Some(row)) = (first, rows.first()) {
            first = Some(seen(row)?.deadline);
        }
        let (mut given, mut damaged) = (Vec::new(), Vec::new());
        for row in &rows {
            let read = readable(TaskRow::read(row), &mut damaged, |failure| seen(row)?.damaged(failure))?;
            given.extend(read.map(|_| seen(row)).transpose()?);
        }
        // An unreadable task must not end: a program that can read it may find that it is not overdue.
        aside.put_or_warn(connection, &damaged).await;
        found += rows.len();
        ended.extend(end_each(connection, aside, now, &given).await?);
        match rows.last() {
            Some(last) if ended.is_empty() && rows.len() == limit => after = seen(last)?.place(),
            _ => break,
        }
    }
    ended.sort_by_key(|task: &Task| (task.deadline_at, task.id));
    if limit > 0 {
        look.answer(Index::Overdue, first.unwrap_or(latest).min(latest));
    }
    // Overdue tasks that were not ended come first.
    let from = first.unwrap_or(i64::MAX).min(look.floor(&Index::FirstDeadline));
    let next = next_deadline(connection.query(NEXT, &[(&from, Type::INT8)]).await);
    if let Ok(next) = next {
        look.answer(Index::FirstDeadline, next.map_or(i64::MAX, millis));
    }
    let next = next.unwrap_or(Some(now));
    // An overdue task that was not ended is locked by another transaction, or cannot be changed: an immediate retry
    // would find the same.
    let is_left = ended.len() < found.min(limit) && next.is_some_and(|deadline| deadline <= now);
    let next_deadline = if is_left { Some(now.after(LOCKED_FOR)) } else { next };
    Ok(Overdue { ended, next_deadline })
}

/// Overdue tasks after a place. Another process may be changing them.
const OVERDUE: &str = concat!(
    "SELECT ",
    live_task!(),
    ", live.tenant, live.id, live.deadline_at
     FROM (
         SELECT * FROM redrive.live
         WHERE lease_until IS NULL AND deadline_at <= $1 AND (deadline_at, id) > ($3, $4)
         ORDER BY deadline_at, id
         LIMIT $2
     ) AS live
     LEFT JOIN LATERAL (
         SELECT * FROM redrive.tasks WHERE tasks.tenant = live.tenant AND tasks.id = live.id LIMIT 1
     ) AS tasks ON true
     ORDER BY live.deadline_at, live.id"
);

/// A task as the scan found it, whether or not it can be read.
#[derive(Debug, Clone)]
struct Seen {
    tenant: String,
    id: Uuid,
    deadline: i64,
    token: Option<i64>,
}

fn seen(row: &Row) -> Result<Seen, PostgresError> {
    let mut cells = Cells::from(row, LIVE_TASK_COLUMN_COUNT);
    let token = Cells::from(row, TOKEN_COLUMN).get()?;
    Ok(Seen { tenant: cells.get()?, id: cells.get()?, deadline: cells.get()?, token })
}

impl Seen {
    fn place(&self) -> (i64, Uuid) {
        (self.deadline, self.id)
    }

    fn damaged(&self, problem: &PostgresError) -> Result<Damaged, PostgresError> {
        let seen = SeenTask { id: self.id, token: self.token, lease_until: None, is_claimed: false, is_refused: false };
        Ok(Damaged::task(&self.tenant, seen, problem))
    }
}

/// Ends these tasks. If PostgreSQL refuses, each half is tried by itself, and so on: the task that it refuses is set
/// aside.
async fn end_each(
    connection: &Connection,
    aside: &Aside,
    now: Timestamp,
    tasks: &[Seen],
) -> Result<Vec<Task>, PostgresError> {
    let mut ended = Vec::new();
    let mut parts = vec![tasks];
    while let Some(part) = parts.pop() {
        match (end(connection, now, part).await, part) {
            (Ok(step), _) => ended.extend(step),
            (Err(failure), [task]) if failure.is_about_a_row() => {
                // The operator must repair a damaged page.
                if !failure.is_damaged_page() {
                    aside.put_or_warn(connection, &[task.damaged(&failure)?.refused()]).await;
                }
            }
            (Err(failure), _) if failure.is_about_a_row() => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
            }
            (Err(failure), _) if ended.is_empty() => return Err(failure),
            // The tasks that were ended must be returned; the next scan finds the others.
            (Err(_), _) => break,
        }
    }
    Ok(ended)
}

async fn end(connection: &Connection, now: Timestamp, tasks: &[Seen]) -> Result<Vec<Task>, PostgresError> {
    if tasks.is_empty() {
        return Ok(Vec::new());
    }
    let reason = Reason::Deadline;
    let tenants: Vec<&str> = tasks.iter().map(|task| task.tenant.as_str()).collect();
    let ids: Vec<Uuid> = tasks.iter().map(|task| task.id).collect();
    let rows = connection
        .query(
            END,
            &[
                (&millis(now), Type::INT8),
                (&tenants, Type::TEXT_ARRAY),
                (&reason.as_str(), Type::TEXT),
                (&ids, Type::UUID_ARRAY),
            ],
        )
        .await?;
    // A task that was damaged after the scan has ended, and a later read finds it.
    let mut ended: Vec<Task> = rows.iter().filter_map(|row| TaskRow::read(row).ok()).map(|row| row.task).collect();
    for task in &mut ended {
        task.status = Status::Exhausted;
        task.reason = Some(reason);
        task.next_attempt_at = None;
        task.ended_at = Some(now);
    }
    Ok(ended)
}

/// Reads the next deadline. If it is unknown or invalid, the next scan finds it: the ended tasks must be returned
/// anyway.
fn next_deadline(next: Result<Vec<Row>, PostgresError>) -> Result<Option<Timestamp>, PostgresError> {
    next?.first().map_or(Ok(None), |row| Cells::of(row).optional_timestamp())
}

/// The numbers that the statement contains as literals.
const _: () = assert!(status_code(Status::Pending) == 2 && status_code(Status::Exhausted) == 6);
