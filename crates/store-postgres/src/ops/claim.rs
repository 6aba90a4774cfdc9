//! Leasing due work: one statement for all classes of lanes that have room.
//!
//! A claim never waits: a row that another process is just claiming is skipped. What is left in each room is asked
//! right behind, in a statement of its own, which sees what this one did.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use redrive_core::{Lane, TaskId};
use redrive_store::{ClaimRequest, Claimed, Claims, KnownRequest, LaneDue, LaneRoom};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::{
    Cells, LIVE_TASK_COLUMN_COUNT, REQUEST_COLUMN_COUNT, TaskRow, Uuid, class_code, live_task, millis, request,
    request_columns, whole_millis,
};
use crate::connection::Connection;
use crate::failure::{Failure, understood};

/// What a claim changes in a row, and what it answers. A lease that would end after the end of time ends then. It is an
/// insertion that always meets its row, because an UPDATE would have to be joined to what was picked: the planner may
/// believe that the queue is small, and walk all of it. Only what a row cannot be without is inserted.
macro_rules! lease_and_answer {
    () => {
        concat!(
            ", leased AS (
                 INSERT INTO redrive.live (
                     tenant, id, due_at, token, attempt_number, attempts_before, run, run_started_at, deadline_at,
                     attempt_timeout_ms, policy_version, cancel_requested, dependency, policy
                 )
                 SELECT DISTINCT ON (tenant, id)
                     tenant, id, due_at, token, attempt_number, attempts_before, run, run_started_at, deadline_at,
                     attempt_timeout_ms, policy_version, cancel_requested, dependency, policy
                 FROM picked
                 ORDER BY tenant, id
                 ON CONFLICT (tenant, id) DO UPDATE SET
                     token = live.token + 1, attempt_number = live.attempt_number + 1, node = $1, lease_since = $2,
                     lease_until = greatest($2, live.due_at)
                         + least(live.attempt_timeout_ms, 9223372036854775807 - greatest($2, live.due_at) - $3) + $3
                 RETURNING *
             ), counted AS (
                 INSERT INTO redrive.task_counts (tenant, policy, policy_version, status, tasks)
                 SELECT tenant, policy, policy_version, status, step * count(*)
                 FROM leased CROSS JOIN (VALUES (2, -1), (3, 1)) AS change (status, step)
                 GROUP BY tenant, policy, policy_version, status, step
             )
             SELECT ",
            live_task!(),
            ", ",
            request_columns!(),
            ", live.class
              FROM leased AS live
              JOIN LATERAL (
                  SELECT * FROM redrive.tasks WHERE tasks.tenant = live.tenant AND tasks.id = live.id LIMIT 1
              ) AS tasks ON true"
        )
    };
}

/// Whether the next attempt of a row of `live` is the last of its run. The task itself is asked only where the row does not
/// say how many attempts there are.
macro_rules! is_last {
    () => {
        "live.attempt_number - live.attempts_before + 1 >= coalesce(live.max_attempts, (
             SELECT tasks.max_attempts FROM redrive.tasks WHERE tasks.tenant = live.tenant AND tasks.id = live.id
         ))"
    };
}

/// How long a lane waits for what is due in it and is locked by another transaction.
const LOCKED_FOR: Duration = Duration::from_millis(50);

/// Rooms are walked in their order, each along the index of due work, row by row until `most` are picked: what is not
/// picked is not locked. `ends` is above zero from the first last attempt on that has no slot; a window without an order
/// numbers rows as they come, so nothing is sorted.
const CLAIM: &str = concat!(
    "WITH room AS MATERIALIZED (
         SELECT * FROM unnest($4::text[], $5::text[], $6::smallint[], $7::bigint[], $8::bigint[])
             AS room (tenant, dependency, class, slots, tasks)
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
      AND live.lease_until IS NULL
    ORDER BY live.due_at
    LIMIT 1
)
FROM unnest($1::text[], $2::text[], $3::smallint[]) WITH ORDINALITY AS rooms (tenant, dependency, class, place)
ORDER BY rooms.place";

pub(crate) async fn claim(connection: &Connection, node: &str, request: &ClaimRequest) -> Result<Claims, Failure> {
    let ClaimRequest { rooms, most, due_by, lease, now } = request;
    let tenants: Vec<&str> = rooms.iter().map(|room| room.lane.tenant.as_str()).collect();
    let dependencies: Vec<&str> = rooms.iter().map(|room| room.lane.dependency.as_str()).collect();
    let classes: Vec<i16> = rooms.iter().map(|room| class_code(room.class)).collect();
    let slots: Vec<i64> = rooms.iter().map(|room| count(room.slots)).collect();
    let tasks: Vec<i64> = rooms.iter().map(|room| count(room.slots.saturating_add(room.ahead))).collect();
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
    ];
    let left =
        [(&tenants as _, Type::TEXT_ARRAY), (&dependencies as _, Type::TEXT_ARRAY), (&classes as _, Type::INT2_ARRAY)];
    let (rows, left) = connection.query_and_then((CLAIM, &claim), (LEFT, &left)).await?;
    let places: HashMap<(&Lane, i16), usize> =
        rooms.iter().enumerate().map(|(place, room)| ((&room.lane, class_code(room.class)), place)).collect();
    let mut claimed: Vec<(Option<usize>, Claimed)> = Vec::with_capacity(rows.len());
    for row in &rows {
        let Some(task) = understood(read(row)) else { continue };
        let class = Cells::from(row, LIVE_TASK_COLUMN_COUNT + REQUEST_COLUMN_COUNT).get()?;
        claimed.push((places.get(&(&task.task.lane, class)).copied(), task));
    }
    claimed.sort_by_key(|(place, claimed)| (*place, claimed.task.next_attempt_at, claimed.task.id));
    // What was claimed must be answered. A room of which nothing is known has its next turn at once, and is asked then.
    let left = left.unwrap_or_default();
    let served: HashSet<usize> = claimed.iter().filter_map(|(place, _)| *place).collect();
    let read_left = |(at, room): (usize, &LaneRoom)| {
        let next_due = left.get(at).map_or(Ok(Some(*now)), |row| Cells::of(row).optional_timestamp())?;
        // What is due, has a slot and could not be had is locked by another transaction: asking at once would find the same.
        let is_locked = room.slots > 0 && rows.len() < *most && !served.contains(&at);
        let next_due = match next_due {
            Some(due) if is_locked && due <= *due_by => Some(due.max(now.after(LOCKED_FOR))),
            next_due => next_due,
        };
        Ok(LaneDue { lane: room.lane.clone(), class: room.class, next_due })
    };
    let lanes = rooms.iter().enumerate().map(read_left).collect::<Result<_, Failure>>()?;
    Ok(Claims { claimed: claimed.into_iter().map(|(_, claimed)| claimed).collect(), lanes })
}

/// A number of tasks as PostgreSQL counts them.
fn count(tasks: usize) -> i64 {
    i64::try_from(tasks).unwrap_or(i64::MAX)
}

/// The tasks that can be understood. One that cannot be, because a newer program wrote it, holds up none of the others: its
/// lease runs out, and who understands it takes it over.
pub(crate) fn readable(rows: &[Row]) -> Vec<Claimed> {
    rows.iter().filter_map(|row| understood(read(row))).collect()
}

/// Reads a task with its lease and its request.
fn read(row: &Row) -> Result<Claimed, Failure> {
    let TaskRow { task, lease, .. } = TaskRow::read(row)?;
    let place = |what: &dyn std::fmt::Display| Failure::corrupt(format_args!("task {}", task.id), what);
    let request = request(&mut Cells::from(row, LIVE_TASK_COLUMN_COUNT)).map_err(|failure| place(&failure))?;
    let lease = lease.ok_or_else(|| place(&"is claimed without a lease"))?;
    Ok(Claimed { task, request: request.into(), lease })
}

/// By id and token, as an index elsewhere knows them. A row that somebody else is just claiming is not waited for. A last
/// attempt without a slot ends its class of the lane, as in a room: what comes behind it without a slot is left out too.
///
/// `num_nulls` and not `IS NULL`: that keeps the index of due work out of the planner's choice. In a table that was never
/// analysed, or only while it was empty, it prefers that one to the primary key, even for a custom plan, and reads all
/// that the tenant has pending for every task.
const CLAIM_KNOWN: &str = concat!(
    "WITH known AS MATERIALIZED (
         SELECT * FROM unnest($4::text[], $5::uuid[], $6::bigint[], $7::boolean[]) WITH ORDINALITY
             AS known (tenant, id, token, has_slot, place)
     ), found AS MATERIALIZED (
         SELECT due.*, known.has_slot, known.place
         FROM known CROSS JOIN LATERAL (
             SELECT live.*, NOT known.has_slot AND ",
    is_last!(),
    " AS ends
             FROM redrive.live
             WHERE live.tenant = known.tenant AND live.id = known.id AND live.token = known.token
               AND num_nulls(live.lease_until) = 1 AND live.due_at <= $8
             FOR UPDATE OF live SKIP LOCKED
         ) AS due
     ), picked AS MATERIALIZED (
         SELECT *
         FROM (
             SELECT found.*, count(*) FILTER (WHERE found.ends)
                 OVER (PARTITION BY tenant, dependency, class ORDER BY place ROWS UNBOUNDED PRECEDING) AS ended
             FROM found
         ) AS counted
         WHERE has_slot OR ended = 0
     )",
    lease_and_answer!()
);

pub(crate) async fn claim_known(
    connection: &Connection,
    node: &str,
    request: &KnownRequest,
) -> Result<Vec<Claimed>, Failure> {
    let KnownRequest { known, due_by, lease, now } = request;
    let tenants: Vec<&str> = known.iter().map(|known| known.tenant.as_str()).collect();
    let ids: Vec<Uuid> = known.iter().map(|known| known.id.into()).collect();
    let tokens: Vec<i64> = known.iter().map(|known| known.token.0.cast_signed()).collect();
    let slots: Vec<bool> = known.iter().map(|known| known.has_slot).collect();
    let rows = connection
        .query(
            CLAIM_KNOWN,
            &[
                (&node, Type::TEXT),
                (&millis(*now), Type::INT8),
                (&whole_millis(lease.margin), Type::INT8),
                (&tenants, Type::TEXT_ARRAY),
                (&ids, Type::UUID_ARRAY),
                (&tokens, Type::INT8_ARRAY),
                (&slots, Type::BOOL_ARRAY),
                (&millis(*due_by), Type::INT8),
            ],
        )
        .await?;
    let mut claimed = readable(&rows);
    let places: HashMap<TaskId, usize> = known.iter().enumerate().map(|(place, known)| (known.id, place)).collect();
    claimed.sort_by_key(|claimed| places.get(&claimed.task.id).copied());
    Ok(claimed)
}
