//! Leasing due work, room by room.

use redrive_core::{Request, Status, Timestamp};
use redrive_store::{ClaimRequest, Claimed, Claims, LaneDue, LaneRoom, Lease, Token};
use rusqlite::{Connection, OptionalExtension, Statement};

use crate::codec::{self, TASK_COLUMN_COUNT, TaskRow, millis, request_columns, sequence, task_columns, timestamp};
use crate::failure::Failure;
use crate::in_flight::Claim;
use crate::names::Names;
use crate::writer::Writer;

pub(crate) fn claim(writer: &mut Writer, request: &ClaimRequest) -> Result<Claims, Failure> {
    let Writer { connection, names, counters, in_flight, .. } = writer;
    // Found once for all rooms: there may be thousands.
    let mut due = connection.prepare_cached(DUE)?;
    let mut lease = connection.prepare_cached(LEASE)?;
    let mut earliest = connection.prepare_cached(EARLIEST)?;
    let mut claims = Claims::default();
    for room in &request.rooms {
        let mut next_due = None;
        if let Some(key) = names.lane_key(connection, &room.lane)? {
            let most = request.most.saturating_sub(claims.claimed.len());
            let look = Look { lane: key.lane, room, most, due_by: request.due_by };
            for (row, content) in look.due_tasks(connection, names, &mut due)? {
                let (tenant, version) = (row.tenant, row.version);
                let claimed = lease_task(&mut lease, row, content, request)?;
                counters.moved(tenant, version, Status::Pending, Status::InFlight);
                in_flight.remember(claimed.task.id, Claim { tenant, token: claimed.lease.token, version });
                claims.claimed.push(claimed);
            }
            let first = earliest.query_row((key.lane, room.class.code()), |row| row.get(0)).optional()?;
            next_due = first.and_then(timestamp);
        }
        claims.lanes.push(LaneDue { lane: room.lane.clone(), class: room.class, next_due });
    }
    Ok(claims)
}

/// The first tasks of a class of a lane that are due, from the index, each with its request.
pub(crate) const DUE: &str = concat!(
    "SELECT ",
    task_columns!(),
    ", ",
    request_columns!(),
    " FROM tasks LEFT JOIN requests ON requests.task = tasks.id
     WHERE tasks.status = 2 AND tasks.lane = ?1 AND tasks.class = ?2 AND tasks.next_attempt_at <= ?3
     ORDER BY tasks.next_attempt_at, tasks.id
     LIMIT ?4"
);

/// When the first task of a class of a lane is due. Answered from the index alone.
pub(crate) const EARLIEST: &str = "SELECT next_attempt_at FROM tasks
     WHERE status = 2 AND lane = ?1 AND class = ?2
     ORDER BY next_attempt_at
     LIMIT 1";

const LEASE: &str = "UPDATE tasks SET status = 3, attempt_number = ?2, token = ?3, lease_since = ?4, lease_until = ?5
     WHERE id = ?1";

/// What to look for in one class of a lane.
struct Look<'a> {
    lane: i64,
    room: &'a LaneRoom,
    most: usize,
    due_by: Timestamp,
}

impl Look<'_> {
    /// The tasks that are due and fit. Looks at one task more than these at most: the one that does not fit.
    fn due_tasks(
        &self,
        connection: &Connection,
        names: &mut Names,
        due: &mut Statement<'_>,
    ) -> Result<Vec<(TaskRow, Request)>, Failure> {
        let limit = self.room.slots.saturating_add(self.room.ahead).min(self.most);
        let mut found = Vec::new();
        if limit == 0 {
            return Ok(found);
        }
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = due.query((self.lane, self.room.class.code(), millis(self.due_by), limit))?;
        while let Some(row) = rows.next()? {
            let task = TaskRow::read(connection, names, row)?;
            if found.len() >= self.room.slots && task.task.is_next_attempt_last() {
                break;
            }
            let content = codec::request(row, TASK_COLUMN_COUNT, sequence(task.task.id))?;
            found.push((task, content));
        }
        Ok(found)
    }
}

fn lease_task(
    update: &mut Statement<'_>,
    row: TaskRow,
    content: Request,
    request: &ClaimRequest,
) -> Result<Claimed, Failure> {
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
    Ok(Claimed { task, request: content.into(), lease })
}
