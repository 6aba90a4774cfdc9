//! A page of tasks, newest first.
//!
//! Dead letters and tasks in flight have indexes. Every other query scans the tasks themselves, newest first, and stops
//! after [`ROWS_PER_PAGE`]: an index for every query would slow every submission down.

use std::collections::BTreeMap;

use redrive_core::{Lane, Status, TaskId};
use redrive_store::{TaskPage, TaskQuery};
use rusqlite::{Connection, Row};

use crate::codec::{sequence, status};
use crate::names::Names;
use crate::ops::find;
use crate::ops::set_aside::{Damaged, SET_ASIDE, readable};
use crate::readers::Reader;
use crate::sqlite_error::SqliteError;

/// The most rows that one page looks at before it returns where to continue.
const ROWS_PER_PAGE: usize = 10_000;

pub(crate) const WALK_ALL: &str = "SELECT id, tail, tenant, lane, policy, status, created_at FROM tasks
     WHERE id <= ?2 AND id >= ?3 AND ?1 IS NOT NULL
     ORDER BY id DESC";

pub(crate) const WALK_DEAD_LETTERS: &str = "SELECT id, tail, tenant, lane, policy, status, created_at FROM tasks
     WHERE status IN (5, 6) AND tenant = ?1 AND id <= ?2 AND id >= ?3
     ORDER BY id DESC";

/// Few tasks are in flight, so sorting them by id is cheap.
pub(crate) const WALK_IN_FLIGHT: &str = "SELECT id, tail, tenant, lane, policy, status, created_at
     FROM tasks INDEXED BY tasks_in_flight
     WHERE status = 3 AND tenant = ?1 AND id <= ?2 AND id >= ?3
     ORDER BY id DESC";

pub(crate) fn list(
    reader: &mut Reader,
    query: &TaskQuery,
    damaged: &mut Vec<Damaged>,
) -> Result<TaskPage, SqliteError> {
    let mut page = TaskPage::default();
    let Some(tenant) = reader.names.tenant_key(&reader.connection, &query.tenant)? else { return Ok(page) };
    let (found, next) = find_matches(reader, query, tenant, damaged)?;
    for task in found {
        let read = find::detail(&reader.connection, &mut reader.names, task);
        page.tasks.extend(readable(read, damaged, |problem| Damaged::task(task, problem))?.flatten());
    }
    page.next = next;
    Ok(page)
}

/// The rows of the page, and where the next one starts.
fn find_matches(
    reader: &mut Reader,
    query: &TaskQuery,
    tenant: i64,
    damaged: &mut Vec<Damaged>,
) -> Result<(Vec<i64>, Option<TaskId>), SqliteError> {
    let Reader { connection, names } = reader;
    let below = query.below.map_or(i64::MAX, |id| sequence(id) - 1);
    let (lowest, highest) = query.id_prefix.map_or((0, i64::MAX), |ids| (sequence(ids.first()), sequence(ids.last())));
    let mut select = connection.prepare_cached(walk(&query.statuses))?;
    let mut rows = select.query((tenant, below.min(highest), lowest))?;
    let mut found = Vec::new();
    let mut last = None;
    let mut looked_at = 0;
    while looked_at < ROWS_PER_PAGE && found.len() < query.limit.max(1) {
        let Some(row) = rows.next()? else { return Ok((found, None)) };
        looked_at += 1;
        let task: i64 = row.get(0)?;
        let note = |problem| Damaged::task(task, problem);
        let Some(candidate) = readable(Candidate::read(row), damaged, note)? else {
            last = Some(TaskId::from_parts(task.cast_unsigned(), 0));
            continue;
        };
        last = Some(candidate.cursor(tenant));
        if query.id_prefix.is_some_and(|ids| !ids.includes(candidate.id())) {
            continue;
        }
        if candidate.tenant != tenant || candidate.status == SET_ASIDE {
            continue;
        }
        let matches = candidate.matches(connection, names, query);
        if readable(matches, damaged, note)? == Some(true) {
            found.push(task);
        }
    }
    let more = rows.next()?.is_some();
    Ok((found, last.filter(|_| more)))
}

fn walk(statuses: &[Status]) -> &'static str {
    match statuses {
        [] => WALK_ALL,
        all if all.iter().all(|status| status.is_dead_letter()) => WALK_DEAD_LETTERS,
        all if all.iter().all(|status| *status == Status::InFlight) => WALK_IN_FLIGHT,
        _ => WALK_ALL,
    }
}

/// A row of the scan.
struct Candidate {
    task: i64,
    tail: u64,
    tenant: i64,
    lane: i64,
    version: i64,
    status: i64,
    created_at: u64,
}

impl Candidate {
    fn read(row: &Row<'_>) -> Result<Self, SqliteError> {
        Ok(Candidate {
            task: row.get(0)?,
            tail: row.get(1)?,
            tenant: row.get(2)?,
            lane: row.get(3)?,
            version: row.get(4)?,
            status: row.get(5)?,
            created_at: row.get(6)?,
        })
    }

    fn id(&self) -> TaskId {
        TaskId::from_parts(self.task.cast_unsigned(), self.tail)
    }

    /// Where a page that ends here continues. For a row of another tenant it reveals only the position, not the id.
    fn cursor(&self, tenant: i64) -> TaskId {
        let tail = if self.tenant == tenant { self.tail } else { 0 };
        TaskId::from_parts(self.task.cast_unsigned(), tail)
    }

    fn matches(&self, connection: &Connection, names: &mut Names, query: &TaskQuery) -> Result<bool, SqliteError> {
        if !self.matches_row(query)? {
            return Ok(false);
        }
        let lane: Lane = names.lane(connection, self.lane)?;
        let policy = names.version(connection, self.version)?;
        Ok(query.dependency.as_ref().is_none_or(|dependency| *dependency == lane.dependency)
            && query.policy.as_ref().is_none_or(|id| *id == policy.id)
            && has_labels(connection, self.task, &query.labels)?)
    }

    fn matches_row(&self, query: &TaskQuery) -> Result<bool, SqliteError> {
        let code = self.status;
        let place = format_args!("task {}", self.task);
        let status = status(code).ok_or_else(|| SqliteError::corrupt(place, format_args!("status {code}")))?;
        Ok((query.statuses.is_empty() || query.statuses.contains(&status))
            && query.created_from.is_none_or(|from| self.created_at >= from.as_millis())
            && query.created_before.is_none_or(|before| self.created_at < before.as_millis()))
    }
}

fn has_labels(connection: &Connection, task: i64, wanted: &BTreeMap<String, String>) -> Result<bool, SqliteError> {
    if wanted.is_empty() {
        return Ok(true);
    }
    let mut select = connection.prepare_cached("SELECT labels FROM requests WHERE task = ?1")?;
    let mut rows = select.query([task])?;
    let Some(row) = rows.next()? else { return Ok(false) };
    let Some(text) = row.get_ref(0)?.as_str_or_null().map_err(|error| SqliteError::corrupt("labels", error))? else {
        return Ok(false);
    };
    let labels: BTreeMap<String, String> = serde_json::from_str(text)
        .map_err(|error| SqliteError::corrupt(format_args!("labels of task {task}"), error))?;
    Ok(wanted.iter().all(|(name, value)| labels.get(name) == Some(value)))
}
