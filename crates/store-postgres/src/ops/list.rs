//! A page of tasks, newest first.
//!
//! Dead letters and what has not ended have tables of their own. Everything else walks the tasks themselves and stops
//! after [`ROWS_PER_PAGE`]: an index for every question would be paid for by every task.

use redrive_core::Status;
use redrive_store::{TaskDetail, TaskPage, TaskQuery};
use tokio_postgres::types::Type;

use crate::codec::{Cells, Uuid, any_task, millis, request_columns, status_code};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::ops::find::{detail_columns, read_detail};

/// The most rows that one page looks at before it says "go on from here".
const ROWS_PER_PAGE: usize = 10_000;
/// How many tasks are read at once: bodies come with them.
const STEP: usize = 500;

/// The ids that a walk looks at, newest first.
macro_rules! walk {
    ($table:literal) => {
        concat!("SELECT id FROM ", $table, " WHERE tenant = $1 AND id < $2 ORDER BY id DESC LIMIT $3")
    };
}

const WALK_ALL: &str = walk!("redrive.tasks");
const WALK_DEAD_LETTERS: &str = walk!("redrive.dead_letters");
const WALK_LIVE: &str = walk!("redrive.live");
/// What is in flight is little, so that sorting it by id is no matter.
const WALK_IN_FLIGHT: &str = "
SELECT id FROM (SELECT tenant, id FROM redrive.live WHERE lease_until IS NOT NULL ORDER BY lease_until) AS leased
WHERE tenant = $1 AND id < $2
ORDER BY id DESC
LIMIT $3";

const DETAILS: &str = concat!(
    "SELECT ",
    detail_columns!(),
    " FROM unnest($2::uuid[]) AS wanted (id)
      JOIN LATERAL (
          SELECT * FROM redrive.tasks
          WHERE tasks.tenant = $1 AND tasks.id = wanted.id
            AND ($3::text IS NULL OR tasks.dependency = $3)
            AND ($4::text IS NULL OR tasks.policy = $4)
            AND tasks.created_at >= $5 AND tasks.created_at < $6
          LIMIT 1
      ) AS tasks ON true",
    any_task!(join),
    "      WHERE cardinality($7::smallint[]) = 0
         OR (CASE WHEN live.id IS NULL THEN ended.status WHEN live.lease_until IS NULL THEN 2 ELSE 3 END) = ANY ($7)
      ORDER BY tasks.id DESC"
);

pub(crate) async fn tasks(connection: &Connection, query: &TaskQuery) -> Result<TaskPage, Failure> {
    let below = query.below.map_or(Uuid::HIGHEST, Uuid::from);
    let tenant = query.tenant.as_str();
    let walked = connection
        .query(
            walk(&query.statuses),
            &[(&tenant, Type::TEXT), (&below, Type::UUID), (&(ROWS_PER_PAGE as i64 + 1), Type::INT8)],
        )
        .await?;
    let mut ids: Vec<Uuid> = walked.iter().map(|row| Cells::of(row).get()).collect::<Result<_, _>>()?;
    // One more than is looked at tells whether there are more.
    let is_more = ids.len() > ROWS_PER_PAGE;
    ids.truncate(ROWS_PER_PAGE);
    let limit = query.limit.max(1);
    let mut found = Vec::new();
    // A small step first: without filters the first few rows are the page, and one more says that there is a next one.
    let first = ids.len().min(limit.saturating_add(1)).min(STEP);
    let (first, rest) = ids.split_at(first);
    for step in std::iter::once(first).chain(rest.chunks(STEP)) {
        let details = details(connection, query, step).await?;
        found.extend(details.into_iter().filter(|detail| has_labels(detail, query)));
        if found.len() > limit {
            break;
        }
    }
    let next = match found.len() > limit {
        true => found.get(limit - 1).map(|last: &TaskDetail| last.task.id),
        false => ids.last().filter(|_| is_more).and_then(|last| last.task_id()),
    };
    found.truncate(limit);
    Ok(TaskPage { tasks: found, next })
}

fn walk(statuses: &[Status]) -> &'static str {
    let are_all = |is: fn(Status) -> bool| !statuses.is_empty() && statuses.iter().all(|status| is(*status));
    if are_all(Status::is_dead_letter) {
        WALK_DEAD_LETTERS
    } else if are_all(|status| status == Status::InFlight) {
        WALK_IN_FLIGHT
    } else if are_all(|status| !status.is_ended()) {
        WALK_LIVE
    } else {
        WALK_ALL
    }
}

async fn details(connection: &Connection, query: &TaskQuery, ids: &[Uuid]) -> Result<Vec<TaskDetail>, Failure> {
    let statuses: Vec<i16> = query.statuses.iter().map(|status| status_code(*status)).collect();
    let (from, before) = (query.created_from.map_or(0, millis), query.created_before.map_or(i64::MAX, millis));
    let rows = connection
        .query(
            DETAILS,
            &[
                (&query.tenant.as_str(), Type::TEXT),
                (&ids, Type::UUID_ARRAY),
                (&query.dependency.as_ref().map(|dependency| dependency.as_str()), Type::TEXT),
                (&query.policy.as_ref().map(|policy| policy.as_str()), Type::TEXT),
                (&from, Type::INT8),
                (&before, Type::INT8),
                (&statuses, Type::INT2_ARRAY),
            ],
        )
        .await?;
    rows.iter().map(read_detail).collect()
}

fn has_labels(detail: &TaskDetail, query: &TaskQuery) -> bool {
    query.labels.iter().all(|(name, value)| detail.request.labels.get(name) == Some(value))
}
