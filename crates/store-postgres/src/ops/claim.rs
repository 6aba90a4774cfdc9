//! Leasing due work: one statement for all lanes that have room.
//!
//! Nobody waits for anybody: a row that another process is just claiming is skipped. What is left in each lane is asked
//! right behind, in a statement of its own, which sees what this one did.

use redrive_core::Timestamp;
use redrive_store::{Claimed, Claims, Known, LaneDue, LaneRoom, LeaseTerms};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::{
    Cells, LIVE_TASK_COLUMN_COUNT, TaskRow, Uuid, live_task, millis, request, request_columns, whole_millis,
};
use crate::connection::Connection;
use crate::failure::Failure;

/// What a claim changes in a row, and what it answers. A lease that would end after the end of time ends then.
macro_rules! lease_and_answer {
    ($order:literal) => {
        concat!(
            ", leased AS (
                 UPDATE redrive.live SET
                     token = live.token + 1, attempt_number = live.attempt_number + 1, node = $1, lease_since = $2,
                     lease_until = $2 + least(live.attempt_timeout_ms, 9223372036854775807 - $2 - $3) + $3
                 FROM picked
                 WHERE live.tenant = picked.tenant AND live.id = picked.id
                 RETURNING live.*, picked.place
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
            " FROM leased AS live
              JOIN LATERAL (
                  SELECT * FROM redrive.tasks WHERE tasks.tenant = live.tenant AND tasks.id = live.id LIMIT 1
              ) AS tasks ON true
              ORDER BY ",
            $order
        )
    };
}

const CLAIM: &str = concat!(
    "WITH room AS MATERIALIZED (
         SELECT * FROM unnest($4::text[], $5::text[], $6::bigint[]) WITH ORDINALITY AS room (
             tenant, dependency, tasks, place
         )
     ), picked AS MATERIALIZED (
         SELECT room.place, due.tenant, due.id
         FROM room CROSS JOIN LATERAL (
             SELECT live.tenant, live.id FROM redrive.live
             WHERE live.tenant = room.tenant AND live.dependency = room.dependency
               AND live.lease_until IS NULL AND live.due_at <= $2
             ORDER BY live.due_at, live.id
             LIMIT room.tasks
             FOR UPDATE SKIP LOCKED
         ) AS due
     )",
    lease_and_answer!("live.place, live.due_at, live.id")
);

const LEFT: &str = "
SELECT (
    SELECT live.due_at FROM redrive.live
    WHERE live.tenant = lanes.tenant AND live.dependency = lanes.dependency AND live.lease_until IS NULL
    ORDER BY live.due_at
    LIMIT 1
)
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS lanes (tenant, dependency, place)
ORDER BY lanes.place";

pub(crate) async fn claim(
    connection: &Connection,
    node: &str,
    lanes: &[LaneRoom],
    terms: LeaseTerms,
    now: Timestamp,
) -> Result<Claims, Failure> {
    let tenants: Vec<&str> = lanes.iter().map(|room| room.lane.tenant.as_str()).collect();
    let dependencies: Vec<&str> = lanes.iter().map(|room| room.lane.dependency.as_str()).collect();
    let rooms: Vec<i64> = lanes.iter().map(|room| i64::try_from(room.room).unwrap_or(i64::MAX)).collect();
    let (since, margin) = (millis(now), whole_millis(terms.margin));
    let claim = [
        (&node as _, Type::TEXT),
        (&since as _, Type::INT8),
        (&margin as _, Type::INT8),
        (&tenants as _, Type::TEXT_ARRAY),
        (&dependencies as _, Type::TEXT_ARRAY),
        (&rooms as _, Type::INT8_ARRAY),
    ];
    let left = [(&tenants as _, Type::TEXT_ARRAY), (&dependencies as _, Type::TEXT_ARRAY)];
    let (claimed, left) = connection.query_and_then((CLAIM, &claim), (LEFT, &left)).await?;
    let claimed = readable(&claimed);
    // What was claimed must be answered. A lane of which nothing is known has its next turn at once, and is asked then.
    let left = left.unwrap_or_default();
    let read_left = |(at, room): (usize, &LaneRoom)| {
        let next_due = left.get(at).map_or(Ok(Some(now)), |row| Cells::of(row).optional_timestamp())?;
        Ok(LaneDue { lane: room.lane.clone(), next_due })
    };
    let lanes = lanes.iter().enumerate().map(read_left).collect::<Result<_, Failure>>()?;
    Ok(Claims { claimed, lanes })
}

/// The tasks that can be understood. One that cannot be, because a newer program wrote it, holds up none of the others: its
/// lease runs out, and who understands it takes it over.
pub(crate) fn readable(rows: &[Row]) -> Vec<Claimed> {
    let read = rows.iter().map(read);
    read.filter_map(|claimed| {
        claimed.inspect_err(|failure| tracing::error!(%failure, "a task in the store cannot be understood")).ok()
    })
    .collect()
}

/// Reads a task with its lease and its request.
fn read(row: &Row) -> Result<Claimed, Failure> {
    let TaskRow { task, lease, .. } = TaskRow::read(row)?;
    let place = |what: &dyn std::fmt::Display| Failure::corrupt(format_args!("task {}", task.id), what);
    let request = request(&mut Cells::from(row, LIVE_TASK_COLUMN_COUNT)).map_err(|failure| place(&failure))?;
    let lease = lease.ok_or_else(|| place(&"is claimed without a lease"))?;
    Ok(Claimed { task, request: request.into(), lease })
}

/// By id and token, as an index elsewhere knows them. A row that somebody else is just claiming is not waited for.
///
/// `num_nulls` and not `IS NULL`: that keeps the index of due work out of the planner's choice. In a table that was never
/// analysed, or only while it was empty, it prefers that one to the primary key, even for a custom plan, and reads all
/// that the tenant has pending for every task.
const CLAIM_KNOWN: &str = concat!(
    "WITH known AS MATERIALIZED (
         SELECT * FROM unnest($4::text[], $5::uuid[], $6::bigint[]) WITH ORDINALITY AS known (tenant, id, token, place)
     ), picked AS MATERIALIZED (
         SELECT known.place, due.tenant, due.id
         FROM known CROSS JOIN LATERAL (
             SELECT live.tenant, live.id FROM redrive.live
             WHERE live.tenant = known.tenant AND live.id = known.id AND live.token = known.token
               AND num_nulls(live.lease_until) = 1 AND live.due_at <= $2
             FOR UPDATE SKIP LOCKED
         ) AS due
     )",
    lease_and_answer!("live.place")
);

pub(crate) async fn claim_known(
    connection: &Connection,
    node: &str,
    known: &[Known],
    terms: LeaseTerms,
    now: Timestamp,
) -> Result<Vec<Claimed>, Failure> {
    let tenants: Vec<&str> = known.iter().map(|known| known.tenant.as_str()).collect();
    let ids: Vec<Uuid> = known.iter().map(|known| known.id.into()).collect();
    let tokens: Vec<i64> = known.iter().map(|known| known.token.0.cast_signed()).collect();
    let rows = connection
        .query(
            CLAIM_KNOWN,
            &[
                (&node, Type::TEXT),
                (&millis(now), Type::INT8),
                (&whole_millis(terms.margin), Type::INT8),
                (&tenants, Type::TEXT_ARRAY),
                (&ids, Type::UUID_ARRAY),
                (&tokens, Type::INT8_ARRAY),
            ],
        )
        .await?;
    Ok(readable(&rows))
}
