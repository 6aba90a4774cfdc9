//! Claims for all classes of lanes that have room, in one statement.
//!
//! The next due time of each room is read by a second statement that is sent right behind. It reads what the claim
//! wrote.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use redrive_core::Timestamp;
use redrive_store::{ClaimRequest, ClaimedTask, Claims, LaneDue, LaneRoom};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{Claimant, LIVE_COLUMNS, Leased, is_last, lease_and_answer};
use crate::codec::{Cells, Uuid, class_code, live_task, millis, request_columns, whole_millis};
use crate::connection::Connection;
use crate::floors::{Index, Look};
use crate::postgres_error::PostgresError;

/// How long a lane waits for a due task that another transaction has locked.
pub(super) const LOCKED_FOR: Duration = Duration::from_millis(50);

/// How long a commit of another process takes whose tasks are due as it begins. A claim passes the index entries that
/// died in this time.
const COMMIT: Duration = Duration::from_millis(100);
/// The same time for when nothing was claimed: then a longer time is affordable.
const SLOW_COMMIT: Duration = Duration::from_secs(5);

/// Rooms are served in their order, each by a scan of the index of due tasks from its floor on, row by row until `most`
/// are picked. Rows that are not picked are not locked. `ends` is above zero from the first last attempt on that has no
/// slot. A window without an order numbers rows as they come, so nothing is sorted.
const CLAIM: &str = concat!(
    "WITH room AS MATERIALIZED (
         SELECT * FROM unnest($4::text[], $5::text[], $6::smallint[], $7::bigint[], $8::bigint[], $11::bigint[])
             AS room (tenant, dependency, class, slots, tasks, floor)
     ), picked AS MATERIALIZED (
         SELECT due.*
         FROM room CROSS JOIN LATERAL (
             SELECT *
             FROM (
                 SELECT numbered.*,
                        count(*) FILTER (WHERE numbered.number > room.slots AND numbered.is_last)
                            OVER (ROWS UNBOUNDED PRECEDING) AS ends
                 FROM (
                     SELECT live.*, row_number() OVER () AS number
                     FROM (
                         SELECT live.*, ",
    is_last!(),
    " AS is_last
                         FROM redrive.live
                         WHERE live.tenant = room.tenant AND live.dependency = room.dependency
                           AND live.class = room.class AND live.lease_until IS NULL AND live.due_at <= $9
                           AND live.due_at >= room.floor
                         ORDER BY live.due_at, live.id
                         LIMIT room.tasks
                         FOR UPDATE OF live SKIP LOCKED
                     ) AS live
                 ) AS numbered
             ) AS counted
             WHERE counted.ends < 1
         ) AS due
         LIMIT $10
     )",
    lease_and_answer!()
);

const LEFT: &str = "
SELECT (
    SELECT live.due_at FROM redrive.live
    WHERE live.tenant = rooms.tenant AND live.dependency = rooms.dependency AND live.class = rooms.class
      AND live.lease_until IS NULL AND live.due_at >= rooms.floor
    ORDER BY live.due_at
    LIMIT 1
)
FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bigint[]) WITH ORDINALITY
    AS rooms (tenant, dependency, class, floor, place)
ORDER BY rooms.place";

pub(super) async fn claim(
    connection: &Connection,
    claimant: Claimant<'_>,
    look: &Look<'_>,
    request: &ClaimRequest,
) -> Result<Claims, PostgresError> {
    let Claimant { node, aside } = claimant;
    let ClaimRequest { rooms, most, due_by, lease, now } = request;
    let tenants: Vec<&str> = rooms.iter().map(|room| room.lane.tenant.as_str()).collect();
    let dependencies: Vec<&str> = rooms.iter().map(|room| room.lane.dependency.as_str()).collect();
    let classes: Vec<i16> = rooms.iter().map(|room| class_code(room.class)).collect();
    let slots: Vec<i64> = rooms.iter().map(|room| count(room.slots)).collect();
    let tasks: Vec<i64> = rooms.iter().map(|room| count(room.slots.saturating_add(room.ahead))).collect();
    let floors: Vec<i64> = rooms.iter().map(|room| look.floor(&Index::of(room))).collect();
    let (since, margin, due_by_millis, limit) =
        (millis(*now), whole_millis(lease.margin), millis(*due_by), count(*most));
    let claim = [
        (&node as _, Type::TEXT),
        (&since as _, Type::INT8),
        (&margin as _, Type::INT8),
        (&tenants as _, Type::TEXT_ARRAY),
        (&dependencies as _, Type::TEXT_ARRAY),
        (&classes as _, Type::INT2_ARRAY),
        (&slots as _, Type::INT8_ARRAY),
        (&tasks as _, Type::INT8_ARRAY),
        (&due_by_millis as _, Type::INT8),
        (&limit as _, Type::INT8),
        (&floors as _, Type::INT8_ARRAY),
    ];
    let left = [
        (&tenants as _, Type::TEXT_ARRAY),
        (&dependencies as _, Type::TEXT_ARRAY),
        (&classes as _, Type::INT2_ARRAY),
        (&floors as _, Type::INT8_ARRAY),
    ];
    let (rows, left) = connection.query_and_then((CLAIM, &claim), (LEFT, &left)).await?;
    let Leased { claimed, damaged } = Leased::read(&rows)?;
    aside.put_or_warn(connection, &damaged).await;
    let room_index = RoomIndex::of(rooms);
    let mut claimed: Vec<_> =
        claimed.into_iter().map(|(at, claimed)| (room_index.of_row(&rows[at]), claimed)).collect();
    claimed.sort_by_key(|(room, claimed)| (*room, claimed.task.next_attempt_at, claimed.task.id));
    // The claimed tasks must be returned. A room whose rest is unknown is claimed from again at once.
    let left = left.unwrap_or_default();
    let served: HashSet<usize> = rows.iter().filter_map(|row| room_index.of_row(row)).collect();
    let newest = newest_due(&claimed);
    let read_left = |(at, room): (usize, &LaneRoom)| {
        let next_due = match left.get(at).map(|row| Cells::of(row).optional_timestamp()) {
            Some(Ok(next_due)) => {
                let floor = floor_after(floors[at], newest.get(&at).copied(), next_due, *now);
                look.answer(Index::of(room), floor);
                next_due
            }
            // An invalid due time belongs to a task that the next claim sets aside.
            Some(Err(_)) | None => Some(*now),
        };
        // A due task with a slot that could not be claimed is locked by another transaction: an immediate claim would
        // find the same.
        let is_locked = room.slots > 0 && rows.len() < *most && !served.contains(&at);
        let next_due = match next_due {
            Some(due) if is_locked && due <= *due_by => Some(due.max(now.after(LOCKED_FOR))),
            next_due => next_due,
        };
        LaneDue { lane: room.lane.clone(), class: room.class, next_due }
    };
    let lanes = rooms.iter().enumerate().map(read_left).collect();
    Ok(Claims { claimed: claimed.into_iter().map(|(_, claimed)| claimed).collect(), lanes })
}

/// The latest due time that was claimed from each room.
fn newest_due(claimed: &[(Option<usize>, ClaimedTask)]) -> HashMap<usize, Timestamp> {
    let mut newest = HashMap::new();
    for (room, claimed) in claimed {
        if let (Some(room), Some(due)) = (room, claimed.task.next_attempt_at) {
            newest.entry(*room).and_modify(|known: &mut Timestamp| *known = due.max(*known)).or_insert(due);
        }
    }
    newest
}

/// The floor for the next claim of a room, after one that started at `floor`. The rest of the room was read with a
/// snapshot, so it includes rows that other transactions have locked. Tasks that other transactions are just writing
/// are not visible yet: they are due about now, or a little before.
fn floor_after(floor: i64, newest_claimed: Option<Timestamp>, left: Option<Timestamp>, now: Timestamp) -> i64 {
    let before = |time| millis(now.before(time));
    let seen = match (newest_claimed, left) {
        (Some(newest), left) => millis(newest).min(left.map_or(i64::MAX, millis)),
        (None, Some(left)) => millis(left).min(floor.max(before(SLOW_COMMIT))),
        // The room was empty, so nothing is known of the next task.
        (None, None) => floor,
    };
    seen.min(before(COMMIT))
}

/// Finds the index of the room that a task was claimed for.
struct RoomIndex<'a>(HashMap<(&'a str, &'a str, i16), usize>);

impl<'a> RoomIndex<'a> {
    fn of(rooms: &'a [LaneRoom]) -> Self {
        let key =
            |room: &'a LaneRoom| (room.lane.tenant.as_str(), room.lane.dependency.as_str(), class_code(room.class));
        RoomIndex(rooms.iter().enumerate().map(|(index, room)| (key(room), index)).collect())
    }

    fn of_row(&self, row: &Row) -> Option<usize> {
        let mut cells = Cells::from(row, LIVE_COLUMNS);
        let (tenant, _id, dependency): (&str, Uuid, &str) = (cells.get().ok()?, cells.get().ok()?, cells.get().ok()?);
        self.0.get(&(tenant, dependency, cells.get().ok()?)).copied()
    }
}

/// A number of tasks as PostgreSQL's `bigint`.
fn count(tasks: usize) -> i64 {
    i64::try_from(tasks).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::BEGINNING;

    #[test]
    fn the_next_claim_starts_before_all_that_waits_and_all_that_may_just_be_written() {
        let at = |millis: Option<u64>| millis.map(Timestamp::from_millis);
        let now = Timestamp::from_millis(20_000);
        // floor, newest that was claimed, first that is left, floor of the next claim
        for (floor, newest, left, expected) in [
            (BEGINNING, Some(500), Some(700), 500),
            (BEGINNING, Some(700), Some(500), 500),
            (BEGINNING, Some(500), None, 500),
            (BEGINNING, Some(20_000), Some(90_000), 19_900),
            (BEGINNING, None, Some(700), 700),
            (BEGINNING, None, Some(90_000), 15_000),
            (16_000, None, Some(90_000), 16_000),
            (16_000, None, None, 16_000),
            (BEGINNING, None, None, BEGINNING),
        ] {
            let next = floor_after(floor, at(newest), at(left), now);
            assert_eq!(next, expected, "from {floor}, {newest:?} claimed, {left:?} left");
        }
    }
}
