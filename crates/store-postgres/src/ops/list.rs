//! A page of tasks, newest first.
//!
//! Dead letters and live tasks have tables of their own. Every other query scans the tasks themselves and stops after
//! [`ROWS_PER_PAGE`]: an index for every query would slow every submission down.

use std::collections::BTreeMap;

use redrive_core::{Body, Status};
use redrive_store::{TaskDetail, TaskPage, TaskQuery};
use tokio_postgres::types::Type;

use crate::codec::{Cells, LIVE_TASK_COLUMN_COUNT, Uuid, any_task, labels, millis, request_columns, status_code};
use crate::connection::Connection;
use crate::ops::find::{detail_columns, read_detail};
use crate::ops::set_aside::{Aside, Damaged, readable};
use crate::postgres_error::PostgresError;

/// The most rows that one page looks at before it returns where to continue.
const ROWS_PER_PAGE: usize = 10_000;
/// How many tasks are matched at once.
const STEP: usize = 500;
/// How many tasks are read at once, with their bodies.
const WHOLE_STEP: usize = 50;
/// The most bytes of bodies in one page, exceeded by at most one step. The page is shorter then.
const BYTES_PER_PAGE: usize = 16 * 1024 * 1024;

/// The ids of a scan, newest first.
macro_rules! walk {
    ($table:literal) => {
        concat!(
            "SELECT id FROM ",
            $table,
            " WHERE tenant = $1 AND id < $2 AND id BETWEEN $4 AND $5 ORDER BY id DESC LIMIT $3"
        )
    };
}

const WALK_ALL: &str = walk!("redrive.tasks");
const WALK_DEAD_LETTERS: &str = walk!("redrive.dead_letters");
const WALK_LIVE: &str = walk!("redrive.live");
/// Few tasks are in flight, so sorting them by id is cheap.
const WALK_IN_FLIGHT: &str = "
WITH leased AS MATERIALIZED (
    SELECT tenant, id FROM redrive.live WHERE lease_until IS NOT NULL ORDER BY lease_until
)
SELECT id FROM leased
WHERE tenant = $1 AND id < $2 AND id BETWEEN $4 AND $5
ORDER BY id DESC
LIMIT $3";

/// Those of some ids that match the query, with their labels.
const MATCH: &str = concat!(
    "SELECT ",
    any_task!(),
    ", tasks.labels
     FROM unnest($2::uuid[]) AS wanted (id)
     JOIN LATERAL (
         SELECT * FROM redrive.tasks
         WHERE tasks.tenant = $1 AND tasks.id = wanted.id
           AND ($3::text IS NULL OR tasks.dependency = $3)
           AND ($4::text IS NULL OR tasks.policy = $4)
           AND tasks.created_at >= $5 AND tasks.created_at < $6
         LIMIT 1
     ) AS tasks ON true",
    any_task!(join),
    "WHERE cardinality($7::smallint[]) = 0
        OR (CASE WHEN live.id IS NULL THEN ended.status WHEN live.lease_until IS NULL THEN 2 ELSE 3 END) = ANY ($7)
     ORDER BY tasks.id DESC"
);

const DETAILS: &str = concat!(
    "SELECT ",
    detail_columns!(),
    " FROM unnest($2::uuid[]) AS wanted (id)
      JOIN LATERAL (
          SELECT * FROM redrive.tasks WHERE tasks.tenant = $1 AND tasks.id = wanted.id LIMIT 1
      ) AS tasks ON true",
    any_task!(join),
    "      ORDER BY tasks.id DESC"
);

pub(crate) async fn list(connection: &Connection, aside: &Aside, query: &TaskQuery) -> Result<TaskPage, PostgresError> {
    let mut damaged = Vec::new();
    let page = page(connection, query, &mut damaged).await?;
    aside.put_or_warn(connection, &damaged).await;
    Ok(page)
}

async fn page(
    connection: &Connection,
    query: &TaskQuery,
    damaged: &mut Vec<Damaged>,
) -> Result<TaskPage, PostgresError> {
    let limit = query.limit.max(1);
    // One more than the limit, to find out whether there are more.
    let looked_at = if is_about_all(query) { limit } else { ROWS_PER_PAGE };
    let mut ids = walk(connection, query, looked_at + 1).await?;
    let is_more = ids.len() > looked_at;
    ids.truncate(looked_at);
    let mut found = Vec::new();
    // A small step first: without filters the first few rows are the page.
    let (first, rest) = ids.split_at(ids.len().min(limit).min(STEP));
    for step in std::iter::once(first).chain(rest.chunks(STEP)) {
        found.extend(matching(connection, query, step, damaged).await?);
        if found.len() > limit {
            break;
        }
    }
    let mut next = match found.get(limit) {
        Some(_) => found.get(limit - 1).copied(),
        None => ids.last().filter(|_| is_more).copied(),
    };
    found.truncate(limit);
    let (mut tasks, mut bytes) = (Vec::with_capacity(found.len()), 0);
    for step in found.chunks(WHOLE_STEP) {
        let details = details(connection, query, step, damaged).await?;
        bytes += details.iter().map(bytes_of).sum::<usize>();
        tasks.extend(details);
        if bytes > BYTES_PER_PAGE && step.last() != found.last() {
            next = step.last().copied();
            break;
        }
    }
    Ok(TaskPage { tasks, next: next.and_then(|last| last.task_id()) })
}

/// Whether every task of the scan matches the query.
fn is_about_all(query: &TaskQuery) -> bool {
    // All fields are named, so that a new filter is not forgotten here.
    let TaskQuery {
        tenant: _,
        statuses,
        dependency,
        policy,
        labels,
        created_from,
        created_before,
        id_prefix: _,
        below: _,
        limit: _,
    } = query;
    statuses.is_empty()
        && dependency.is_none()
        && policy.is_none()
        && labels.is_empty()
        && created_from.is_none()
        && created_before.is_none()
}

fn way(statuses: &[Status]) -> &'static str {
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

async fn walk(connection: &Connection, query: &TaskQuery, limit: usize) -> Result<Vec<Uuid>, PostgresError> {
    let below = query.below.map_or(Uuid::HIGHEST, Uuid::from);
    let (first, last) =
        query.id_prefix.map_or((Uuid::LOWEST, Uuid::HIGHEST), |ids| (ids.first().into(), ids.last().into()));
    let (tenant, limit) = (query.tenant.as_str(), i64::try_from(limit).unwrap_or(i64::MAX));
    let walked = connection
        .query(
            way(&query.statuses),
            &[
                (&tenant, Type::TEXT),
                (&below, Type::UUID),
                (&limit, Type::INT8),
                (&first, Type::UUID),
                (&last, Type::UUID),
            ],
        )
        .await?;
    walked.iter().map(|row| Cells::of(row).get()).collect()
}

async fn matching(
    connection: &Connection,
    query: &TaskQuery,
    ids: &[Uuid],
    damaged: &mut Vec<Damaged>,
) -> Result<Vec<Uuid>, PostgresError> {
    if ids.is_empty() || is_about_all(query) {
        return Ok(ids.to_vec());
    }
    let statuses: Vec<i16> = query.statuses.iter().map(|status| status_code(*status)).collect();
    let (from, before) = (query.created_from.map_or(0, millis), query.created_before.map_or(i64::MAX, millis));
    let rows = connection
        .query(
            MATCH,
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
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut cells = Cells::from(row, LIVE_TASK_COLUMN_COUNT);
        let is_asked_for = match query.labels.is_empty() {
            true => Some(true),
            false => readable(labels(&mut cells), damaged, |failure| Damaged::task_row(row, failure))?
                .map(|labels| has_labels(&labels, query)),
        };
        if is_asked_for == Some(true) {
            found.push(Cells::from(row, 1).get()?);
        }
    }
    Ok(found)
}

fn has_labels(labels: &BTreeMap<String, String>, query: &TaskQuery) -> bool {
    query.labels.iter().all(|(name, value)| labels.get(name) == Some(value))
}

async fn details(
    connection: &Connection,
    query: &TaskQuery,
    ids: &[Uuid],
    damaged: &mut Vec<Damaged>,
) -> Result<Vec<TaskDetail>, PostgresError> {
    let rows = connection.query(DETAILS, &[(&query.tenant.as_str(), Type::TEXT), (&ids, Type::UUID_ARRAY)]).await?;
    let mut details = Vec::with_capacity(rows.len());
    for row in &rows {
        details.extend(readable(read_detail(row), damaged, |failure| Damaged::task_row(row, failure))?);
    }
    // The task may have changed its status since it was matched.
    let is_asked_for = |status| query.statuses.is_empty() || query.statuses.contains(&status);
    details.retain(|detail| is_asked_for(detail.task.status));
    Ok(details)
}

fn bytes_of(detail: &TaskDetail) -> usize {
    let length = |body: &Body| body.inline().map_or(0, bytes::Bytes::len);
    length(&detail.request.body) + detail.answer.as_ref().map_or(0, |answer| length(&answer.body))
}
