//! Claims of tasks that an index outside of the database names.

use std::collections::HashMap;

use redrive_core::TaskId;
use redrive_store::{ClaimKnownRequest, ClaimedTask};
use tokio_postgres::types::Type;

use super::{Claimant, Leased, is_last, lease_and_answer};
use crate::codec::{Uuid, live_task, millis, request_columns, whole_millis};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// Finds tasks by id and token, as such an index holds them. A row that another process is claiming is skipped without
/// waiting. A last attempt without a slot ends its class of the lane, as in a room: the tasks behind it without a slot
/// are left out too.
///
/// `num_nulls` and not `IS NULL`: that keeps the planner from using the index of due tasks. In a table that was never
/// analysed, or only while it was empty, the planner prefers that index to the primary key, even for a custom plan, and
/// then reads all pending tasks of the tenant for every task.
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

pub(super) async fn claim(
    connection: &Connection,
    claimant: Claimant<'_>,
    request: &ClaimKnownRequest,
) -> Result<Vec<ClaimedTask>, PostgresError> {
    let Claimant { node, aside } = claimant;
    let ClaimKnownRequest { known, due_by, lease, now } = request;
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
    let Leased { claimed, damaged } = Leased::read(&rows)?;
    aside.put_or_warn(connection, &damaged).await;
    let places: HashMap<TaskId, usize> = known.iter().enumerate().map(|(place, known)| (known.id, place)).collect();
    let mut claimed: Vec<ClaimedTask> = claimed.into_iter().map(|(_, claimed)| claimed).collect();
    claimed.sort_by_key(|claimed| places.get(&claimed.task.id).copied());
    Ok(claimed)
}
