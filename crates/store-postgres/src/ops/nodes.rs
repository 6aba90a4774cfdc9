//! The processes over this database.

use std::time::Duration;

use redrive_core::Timestamp;
use redrive_store::{FORGOTTEN_AFTER, Heartbeat, Node, NodeId};
use tokio_postgres::types::Type;

use crate::codec::{Cells, millis, whole_millis};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// Records a heartbeat, and deletes the processes that died long ago and hold no lease.
const BEAT: &str = "
WITH forgotten AS (
    DELETE FROM redrive.nodes
    WHERE seen_at < $9 AND node <> $1
      AND NOT EXISTS (SELECT FROM redrive.live WHERE lease_until IS NOT NULL AND live.node = nodes.node)
)
INSERT INTO redrive.nodes (node, started_at, seen_at, every_ms, in_flight, is_draining, version, address, clock_ahead_ms, claims)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $10, $11)
ON CONFLICT (node) DO UPDATE SET
    started_at = excluded.started_at, seen_at = excluded.seen_at, every_ms = excluded.every_ms,
    in_flight = excluded.in_flight, is_draining = excluded.is_draining, version = excluded.version,
    address = excluded.address, clock_ahead_ms = excluded.clock_ahead_ms, claims = excluded.claims
RETURNING (SELECT before.address FROM redrive.nodes AS before WHERE before.node = $1 AND before.started_at > $2)";

pub(crate) async fn beat(
    connection: &Connection,
    node: &NodeId,
    beat: &Heartbeat,
    now: Timestamp,
) -> Result<(), PostgresError> {
    let rows = connection
        .query(
            BEAT,
            &[
                (&node.as_str(), Type::TEXT),
                (&millis(beat.started_at), Type::INT8),
                (&millis(now), Type::INT8),
                (&whole_millis(beat.every), Type::INT8),
                (&i64::try_from(beat.in_flight).unwrap_or(i64::MAX), Type::INT8),
                (&beat.is_draining, Type::BOOL),
                (&beat.version, Type::TEXT),
                (&beat.address, Type::TEXT),
                (&millis(now.before(FORGOTTEN_AFTER)), Type::INT8),
                (&beat.clock_ahead_ms, Type::INT8),
                (&beat.claims, Type::BOOL),
            ],
        )
        .await?;
    // Two processes with the same name overwrite each other's heartbeat. The older one notices that here.
    let other: Option<&str> = rows.first().map_or(Ok(None), |row| Cells::of(row).get())?;
    if let Some(address) = other {
        tracing::error!(%node, address, "another process uses the same node name: give each a name of its own (--node)");
    }
    Ok(())
}

pub(crate) async fn leave(connection: &Connection, node: &NodeId) -> Result<(), PostgresError> {
    let node = node.as_str();
    connection.query("DELETE FROM redrive.nodes WHERE node = $1", &[(&node, Type::TEXT)]).await.map(drop)
}

/// Another process, without the number of its leases.
pub(crate) struct Other {
    pub(crate) id: NodeId,
    pub(crate) beat: Heartbeat,
    pub(crate) seen_at: Timestamp,
}

const OTHERS: &str = "
SELECT node, started_at, version, address, in_flight, is_draining, claims, clock_ahead_ms, every_ms, seen_at
FROM redrive.nodes
WHERE node <> $1";

/// All other processes. Unreadable ones are left out here; the list for operators reports them as an error.
pub(crate) async fn others(connection: &Connection, node: &NodeId) -> Result<Vec<Other>, PostgresError> {
    let rows = connection.query(OTHERS, &[(&node.as_str(), Type::TEXT)]).await?;
    Ok(rows.iter().filter_map(|row| read(&mut Cells::of(row)).ok()).collect())
}

fn read(cells: &mut Cells<'_>) -> Result<Other, PostgresError> {
    Ok(Other {
        id: cells.parsed(|text| NodeId::try_new(text).ok())?,
        beat: Heartbeat {
            started_at: cells.timestamp()?,
            version: cells.get()?,
            address: cells.get()?,
            in_flight: cells.unsigned()?,
            is_draining: cells.get()?,
            claims: cells.get()?,
            clock_ahead_ms: cells.get()?,
            every: Duration::from_millis(cells.unsigned()?),
        },
        seen_at: cells.timestamp()?,
    })
}

/// Few tasks are leased, so they are counted.
const NODES: &str = "
SELECT nodes.node, nodes.started_at, nodes.version, nodes.address, nodes.in_flight, nodes.is_draining, nodes.claims,
       nodes.clock_ahead_ms, nodes.every_ms, nodes.seen_at, coalesce(held.leases, 0)::bigint
FROM redrive.nodes
LEFT JOIN LATERAL (
    SELECT count(*) AS leases FROM redrive.live WHERE lease_until IS NOT NULL AND live.node = nodes.node
) AS held ON true
ORDER BY nodes.node";

pub(crate) async fn nodes(connection: &Connection) -> Result<Vec<Node>, PostgresError> {
    let rows = connection.query(NODES, &[]).await?;
    rows.iter()
        .map(|row| {
            let mut cells = Cells::of(row);
            let Other { id, beat, seen_at } = read(&mut cells)?;
            Ok(Node { id, beat, seen_at, leases: cells.unsigned()? })
        })
        .collect()
}
