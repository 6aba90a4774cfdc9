//! Leasing due work, lane by lane.

use redrive_core::{Status, Timestamp};
use redrive_store::{Claimed, Claims, LaneDue, LaneRoom, Lease, LeaseTerms, Token};
use rusqlite::{Connection, OptionalExtension};

use crate::codec::{self, TASK_COLUMN_COUNT, TaskRow, millis, request_columns, task_columns, timestamp};
use crate::failure::Failure;
use crate::in_flight::Claim;
use crate::writer::Writer;

pub(crate) fn claim(
    writer: &mut Writer,
    lanes: Vec<LaneRoom>,
    terms: LeaseTerms,
    now: Timestamp,
) -> Result<Claims, Failure> {
    let mut claims = Claims::default();
    for LaneRoom { lane, room } in lanes {
        let mut next_due = None;
        if let Some(key) = writer.names.lane_key(&writer.connection, &lane)? {
            let tasks = due(&writer.connection, key.lane, room, now)?;
            claim_all(writer, &tasks, terms, now, &mut claims.claimed)?;
            next_due = earliest(&writer.connection, key.lane)?;
        }
        claims.lanes.push(LaneDue { lane, next_due });
    }
    Ok(claims)
}

/// The first tasks of a lane that are due. Answered from the index alone.
pub(crate) const DUE: &str = "SELECT id FROM tasks
     WHERE status = 2 AND lane = ?1 AND next_attempt_at <= ?2
     ORDER BY next_attempt_at, id
     LIMIT ?3";

fn due(connection: &Connection, lane: i64, room: usize, now: Timestamp) -> Result<Vec<i64>, Failure> {
    let room = i64::try_from(room).unwrap_or(i64::MAX);
    let mut select = connection.prepare_cached(DUE)?;
    let ids = select.query_map((lane, millis(now), room), |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// When the lane's first task is due. Answered from the index alone.
pub(crate) const EARLIEST: &str = "SELECT next_attempt_at FROM tasks
     WHERE status = 2 AND lane = ?1
     ORDER BY next_attempt_at
     LIMIT 1";

pub(crate) fn earliest(connection: &Connection, lane: i64) -> Result<Option<Timestamp>, Failure> {
    let millis = connection.prepare_cached(EARLIEST)?.query_row([lane], |row| row.get(0)).optional()?;
    Ok(millis.and_then(timestamp))
}

/// Leases these tasks, one after the other.
fn claim_all(
    writer: &mut Writer,
    tasks: &[i64],
    terms: LeaseTerms,
    now: Timestamp,
    claimed: &mut Vec<Claimed>,
) -> Result<(), Failure> {
    let Writer { connection, names, counters, in_flight, .. } = writer;
    let mut select = connection.prepare_cached(concat!(
        "SELECT ",
        task_columns!(),
        ", ",
        request_columns!(),
        " FROM tasks JOIN requests ON requests.task = tasks.id WHERE tasks.id = ?1"
    ))?;
    let mut update = connection.prepare_cached(
        "UPDATE tasks SET status = 3, attempt_number = ?2, token = ?3, lease_since = ?4, lease_until = ?5
         WHERE id = ?1",
    )?;
    for &sequence in tasks {
        let mut rows = select.query([sequence])?;
        let place = format_args!("task {sequence}");
        let row = rows.next()?.ok_or_else(|| Failure::corrupt(place, "is due, but it has no request"))?;
        let TaskRow { mut task, lease, tenant, version } = TaskRow::read(connection, names, row)?;
        let request = codec::request(row, TASK_COLUMN_COUNT, sequence)?.into();
        task.status = Status::InFlight;
        task.attempt_number = task.attempt_number.saturating_add(1);
        let token = Token(lease.token.0.saturating_add(1));
        let lease = Lease { token, since: now, until: terms.until(now, task.attempt_timeout) };
        update.execute((sequence, task.attempt_number, token.0, millis(lease.since), millis(lease.until)))?;
        counters.moved(tenant, version, Status::Pending, Status::InFlight);
        in_flight.remember(task.id, Claim { tenant, token, version });
        claimed.push(Claimed { task, request, lease });
    }
    Ok(())
}
