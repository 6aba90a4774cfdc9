//! Claims that work around rows that make a statement fail, such as a row whose token cannot be incremented.
//!
//! A statement that fails leases nothing. It is repeated for each half of the rooms or tasks, and so on, until the
//! failing task is alone. That task is set aside, and the others are claimed.

use std::time::Duration;

use redrive_core::TenantId;
use redrive_store::{ClaimKnownRequest, ClaimRequest, ClaimedTask, Claims, KnownTask, LaneDue, LaneRoom};
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::rooms::LOCKED_FOR;
use super::{Claimant, known, rooms};
use crate::codec::{Cells, Uuid, class_code, millis};
use crate::connection::Connection;
use crate::floors::{Index, Look};
use crate::ops::set_aside::{Damaged, SeenTask, readable};
use crate::postgres_error::PostgresError;

/// How long a lane is skipped if nothing can be claimed from it, or if one of its tasks can be neither claimed nor set
/// aside: every claim from it fails as a whole.
const FAILED_FOR: Duration = Duration::from_secs(1);
/// How long a claim may be split into parts. The claimed tasks must be returned before the call timeout.
const PARTS_FOR: Duration = Duration::from_secs(10);

/// Claims due tasks of these rooms.
pub(crate) async fn claim(
    connection: &Connection,
    claimant: Claimant<'_>,
    look: &Look<'_>,
    request: &ClaimRequest,
) -> Result<Claims, PostgresError> {
    match rooms::claim(connection, claimant, look, request).await {
        Err(failure) if failure.is_about_a_row() => claim_parts(connection, claimant, look, request).await,
        claims => claims,
    }
}

/// Claims each part of the rooms, as far as that is possible.
async fn claim_parts(
    connection: &Connection,
    claimant: Claimant<'_>,
    look: &Look<'_>,
    request: &ClaimRequest,
) -> Result<Claims, PostgresError> {
    let begun = Instant::now();
    let mut claims = Claims::default();
    let mut parts = vec![&request.rooms[..]];
    while let Some(rooms) = parts.pop() {
        if begun.elapsed() > PARTS_FOR {
            claims.lanes.extend(rooms.iter().map(|room| due_after(FAILED_FOR, room, request)));
            continue;
        }
        let most = request.most.saturating_sub(claims.claimed.len());
        let part = ClaimRequest { rooms: rooms.to_vec(), most, ..*request };
        let outcome = match (rooms::claim(connection, claimant, look, &part).await, rooms) {
            (Err(failure), [room]) if failure.is_about_a_row() => {
                claim_one_by_one(connection, claimant, look, &part, room, &failure).await
            }
            (Err(failure), _) if failure.is_about_a_row() => {
                let (first, second) = rooms.split_at(rooms.len() / 2);
                parts.extend([second, first]);
                continue;
            }
            (outcome, _) => outcome,
        };
        match outcome {
            Ok(part) => {
                claims.claimed.extend(part.claimed);
                claims.lanes.extend(part.lanes);
            }
            Err(failure) if claims.claimed.is_empty() && !failure.is_about_a_row() => return Err(failure),
            // The tasks that were claimed before must be returned.
            Err(failure) => {
                tracing::debug!(%failure, lanes = rooms.len(), "some lanes could not be claimed from");
                claims.lanes.extend(rooms.iter().map(|room| due_after(FAILED_FOR, room, request)));
            }
        }
    }
    Ok(claims)
}

/// The first tasks of a class of a lane, from the floor of the claim that failed.
const FIRST: &str = "
SELECT tenant, id, token FROM redrive.live
WHERE tenant = $1 AND dependency = $2 AND class = $3 AND lease_until IS NULL AND due_at <= $4 AND due_at >= $6
ORDER BY due_at, id
LIMIT $5";

/// The most tasks of a room that are tried one by one.
const ONE_BY_ONE: usize = 200;

async fn claim_one_by_one(
    connection: &Connection,
    claimant: Claimant<'_>,
    look: &Look<'_>,
    request: &ClaimRequest,
    room: &LaneRoom,
    failure: &PostgresError,
) -> Result<Claims, PostgresError> {
    tracing::debug!(%failure, lane = %room.lane, "claiming from a lane failed, trying its first tasks one by one");
    let tasks = room.slots.saturating_add(room.ahead).min(request.most).min(ONE_BY_ONE);
    let rows = connection
        .query(
            FIRST,
            &[
                (&room.lane.tenant.as_str(), Type::TEXT),
                (&room.lane.dependency.as_str(), Type::TEXT),
                (&class_code(room.class), Type::INT2),
                (&millis(request.due_by), Type::INT8),
                (&i64::try_from(tasks).unwrap_or(i64::MAX), Type::INT8),
                (&look.floor(&Index::of(room)), Type::INT8),
            ],
        )
        .await?;
    let (mut first, mut damaged) = (Vec::new(), Vec::new());
    for row in &rows {
        let has_slot = first.len() < room.slots;
        first.extend(readable(read_known(row, has_slot), &mut damaged, |failure| damaged_task(row, failure))?);
    }
    claimant.aside.put_or_warn(connection, &damaged).await;
    let ClaimRequest { due_by, lease, now, .. } = *request;
    let known = ClaimKnownRequest { known: first, due_by, lease, now };
    let Parts { claimed, is_stuck } = claim_known_parts(connection, claimant, &known).await?;
    let pause = match (is_stuck, claimed.is_empty()) {
        (true, _) => FAILED_FOR,
        (false, true) => LOCKED_FOR,
        (false, false) => Duration::ZERO,
    };
    Ok(Claims { claimed, lanes: vec![due_after(pause, room, request)] })
}

fn due_after(pause: Duration, room: &LaneRoom, request: &ClaimRequest) -> LaneDue {
    LaneDue { lane: room.lane.clone(), class: room.class, next_due: Some(request.now.after(pause)) }
}

fn read_known(row: &Row, has_slot: bool) -> Result<KnownTask, PostgresError> {
    let mut cells = Cells::of(row);
    let tenant = cells.parsed(|text| TenantId::try_new(text).ok())?;
    Ok(KnownTask { tenant, id: cells.task_id()?, token: cells.token()?, has_slot })
}

fn damaged_task(row: &Row, failure: &PostgresError) -> Result<Damaged, PostgresError> {
    let mut cells = Cells::of(row);
    let (tenant, id, token): (&str, Uuid, i64) = (cells.get()?, cells.get()?, cells.get()?);
    Ok(Damaged::task(tenant, waiting(id, token), failure))
}

/// Claims exactly these tasks.
pub(crate) async fn claim_known(
    connection: &Connection,
    claimant: Claimant<'_>,
    request: &ClaimKnownRequest,
) -> Result<Vec<ClaimedTask>, PostgresError> {
    match known::claim(connection, claimant, request).await {
        Err(failure) if failure.is_about_a_row() => {
            claim_known_parts(connection, claimant, request).await.map(|parts| parts.claimed)
        }
        claimed => claimed,
    }
}

/// The tasks that were claimed in parts, and whether a task can be neither claimed nor set aside.
struct Parts {
    claimed: Vec<ClaimedTask>,
    is_stuck: bool,
}

async fn claim_known_parts(
    connection: &Connection,
    claimant: Claimant<'_>,
    request: &ClaimKnownRequest,
) -> Result<Parts, PostgresError> {
    let begun = Instant::now();
    let (mut claimed, mut is_stuck) = (Vec::new(), false);
    let mut parts = vec![&request.known[..]];
    while let Some(tasks) = parts.pop().filter(|_| begun.elapsed() < PARTS_FOR) {
        let part = ClaimKnownRequest { known: tasks.to_vec(), ..*request };
        match (known::claim(connection, claimant, &part).await, tasks) {
            (Ok(part), _) => claimed.extend(part),
            (Err(failure), [task]) if failure.is_about_a_row() => {
                is_stuck |= !is_hidden(connection, claimant, task, &failure).await;
            }
            (Err(failure), _) if failure.is_about_a_row() => {
                let (first, second) = tasks.split_at(tasks.len() / 2);
                parts.extend([second, first]);
            }
            (Err(failure), _) if claimed.is_empty() => return Err(failure),
            (Err(failure), _) => tracing::debug!(%failure, tasks = tasks.len(), "some tasks could not be claimed"),
        }
    }
    Ok(Parts { claimed, is_stuck })
}

/// Sets aside a task that PostgreSQL refuses to lease; returns whether that worked. A task on a damaged page is not set
/// aside: the operator must repair the page.
async fn is_hidden(connection: &Connection, claimant: Claimant<'_>, task: &KnownTask, failure: &PostgresError) -> bool {
    let seen = waiting(task.id.into(), task.token.0.cast_signed());
    let refused = Damaged::task(task.tenant.as_str(), seen, failure).refused();
    if failure.is_damaged_page() {
        claimant.aside.log_stuck(&refused, failure);
        return false;
    }
    claimant.aside.put_or_warn(connection, &[refused]).await > 0
}

/// A pending task.
fn waiting(id: Uuid, token: i64) -> SeenTask {
    SeenTask { id, token: Some(token), lease_until: None, is_claimed: false, is_refused: false }
}
