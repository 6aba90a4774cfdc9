//! Leasing due tasks, room by room.

use redrive_core::{Request, Status, Timestamp};
use redrive_store::{ClaimRequest, ClaimedTask, Claims, LaneDue, LaneRoom, Lease, Token};
use rusqlite::{Connection, Statement};

use crate::codec::{self, TASK_COLUMN_COUNT, TaskRow, millis, request_columns, sequence, task_columns, time};
use crate::in_flight::Claim;
use crate::names::Names;
use crate::ops::set_aside::{Damaged, readable, set_aside};
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

/// About the most tasks of a room that one claim sets aside.
const MOST_SET_ASIDE: usize = 1_000;

pub(crate) fn claim(writer: &mut Writer, request: &ClaimRequest) -> Result<Claims, SqliteError> {
    let Writer { connection, names, counters, in_flight, .. } = writer;
    // Prepared once for all rooms: there may be thousands.
    let mut first = connection.prepare_cached(FIRST)?;
    let mut lease = connection.prepare_cached(LEASE)?;
    let mut claims = Claims::default();
    for room in &request.rooms {
        let mut next_due = None;
        if let Some(key) = names.lane_key(connection, &room.lane)? {
            let most = request.most.saturating_sub(claims.claimed.len());
            let look = Look { lane: key.lane, room, most, due_by: request.due_by };
            let Found { tasks, next } = look.readable_tasks(connection, names, &mut first)?;
            for (row, content) in tasks {
                let (tenant, version) = (row.tenant, row.version);
                let claimed = lease_task(&mut lease, row, content, request)?;
                counters.moved(tenant, version, Status::Pending, Status::InFlight);
                in_flight.remember(claimed.task.id, Claim { tenant, token: claimed.lease.token, version });
                claims.claimed.push(claimed);
            }
            next_due = next;
        }
        claims.lanes.push(LaneDue { lane: room.lane.clone(), class: room.class, next_due });
    }
    Ok(claims)
}

/// The first tasks of a class of a lane, by the index, each with its request.
pub(crate) const FIRST: &str = concat!(
    "SELECT ",
    task_columns!(),
    ", ",
    request_columns!(),
    " FROM tasks LEFT JOIN requests ON requests.task = tasks.id
     WHERE tasks.status = 2 AND tasks.lane = ?1 AND tasks.class = ?2
     ORDER BY tasks.next_attempt_at, tasks.id
     LIMIT ?3"
);

/// The column of [`FIRST`] with the due time.
const DUE: usize = 11;

const LEASE: &str = "UPDATE tasks SET status = 3, attempt_number = ?2, token = ?3, lease_since = ?4, lease_until = ?5
     WHERE id = ?1";

/// The parameters of a scan in one class of a lane.
struct Look<'a> {
    lane: i64,
    room: &'a LaneRoom,
    most: usize,
    due_by: Timestamp,
}

/// The result of a scan.
#[derive(Default)]
struct Found {
    /// The tasks that are due and fit.
    tasks: Vec<(TaskRow, Request)>,
    /// When the first task behind them is due.
    next: Option<Timestamp>,
}

impl Look<'_> {
    /// Reads tasks and sets unreadable ones aside that come before others, up to a bound. The next claim finds the
    /// rest.
    fn readable_tasks(
        &self,
        connection: &Connection,
        names: &mut Names,
        first: &mut Statement<'_>,
    ) -> Result<Found, SqliteError> {
        let mut aside = 0;
        loop {
            let mut damaged = Vec::new();
            let found = self.tasks(connection, names, first, &mut damaged)?;
            aside += set_aside(connection, &damaged)?;
            if damaged.is_empty() {
                return Ok(found);
            }
            if aside >= MOST_SET_ASIDE {
                return Ok(Found { next: found.next.or(Some(self.due_by)), ..found });
            }
        }
    }

    /// Reads one task more than can fit: the due time of the first that does not fit is returned.
    fn tasks(
        &self,
        connection: &Connection,
        names: &mut Names,
        first: &mut Statement<'_>,
        damaged: &mut Vec<Damaged>,
    ) -> Result<Found, SqliteError> {
        let limit = self.room.slots.saturating_add(self.room.ahead).min(self.most);
        let rows = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let mut rows = first.query((self.lane, self.room.class.code(), rows))?;
        let mut found = Found::default();
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            let note = |problem| Damaged::task(id, problem);
            let Some(due) = time(row, DUE)? else {
                damaged.push(note("the due time is none".to_owned()));
                continue;
            };
            found.next = Some(due);
            if due > self.due_by || found.tasks.len() >= limit {
                return Ok(found);
            }
            let Some(task) = readable(TaskRow::read(connection, names, row), damaged, note)? else { continue };
            if found.tasks.len() >= self.room.slots && task.task.is_next_attempt_last() {
                return Ok(found);
            }
            let content = codec::request(row, TASK_COLUMN_COUNT, id);
            if let Some(content) = readable(content, damaged, note)? {
                found.tasks.push((task, content));
            }
        }
        found.next = None;
        Ok(found)
    }
}

fn lease_task(
    update: &mut Statement<'_>,
    row: TaskRow,
    content: Request,
    request: &ClaimRequest,
) -> Result<ClaimedTask, SqliteError> {
    let TaskRow { mut task, lease, .. } = row;
    task.status = Status::InFlight;
    task.attempt_number = task.attempt_number.saturating_add(1);
    let lease = Lease {
        token: Token(lease.token.0.saturating_add(1)),
        since: request.now,
        until: request.lease.until(request.now, task.next_attempt_at, task.attempt_timeout),
    };
    let (since, until) = (millis(lease.since), millis(lease.until));
    update.execute((sequence(task.id), task.attempt_number, lease.token.0, since, until))?;
    Ok(ClaimedTask { task, request: content.into(), lease })
}
