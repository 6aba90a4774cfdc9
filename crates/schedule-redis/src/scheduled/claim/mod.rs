//! Claims: due tasks are taken from the index, and the store confirms each.
//!
//! The store alone decides which tasks are claimed: those of the taken ones that are pending, due by the same time and
//! of the same token, and those that are claimed from it directly. So no error of the index can make a task be sent
//! twice, too early or after its end. What can go wrong is that a task is *missing* from the index, and in each such
//! case the task is found again:
//!
//! - The store left it out although it is pending and has a slot. It was taken by a score that is its due time, and
//!   `due_by` is the same in both places, whatever the clocks of other processes show. So it is due in the store too,
//!   unless it was changed at that very moment. A process that changes a task adds it again with its new state. (A
//!   change that is rolled back because its process dies is found by the scan below.)
//! - The store left it out because its next attempt is its last and it has no slot, or because it comes after such a
//!   task. It is put back, with all that were taken behind it.
//! - The store did not answer. All taken tasks are put back, with their old due times. Those that were claimed
//!   nevertheless are out of date then, and are left out when they are taken again.
//! - Redis did not answer. The lane is marked as stale (see [`stale_queues`](crate::stale_queues)) and is claimed from
//!   the store.
//! - This process dies. The task is pending in the store, overdue, and not in the index. Every other process notices
//!   that with its next scan of the store, and claims the lane from there.

mod direct;
mod indexed;

use std::collections::BTreeMap;
use std::mem;

use redrive_core::{Class, Task, Timestamp};
use redrive_store::{ClaimRequest, ClaimedTask, Claims, Error, LaneDue, LaneRoom, LeaseTerms};

use crate::schedule::Queue;
use crate::state::State;

pub(super) async fn claim(state: &State, request: ClaimRequest) -> Result<Claims, Error> {
    let ClaimRequest { rooms, most, due_by, lease, now } = request;
    let terms = Terms { due_by, lease, now };
    let is_flushed = state.pending_changes.flushed().await;
    let is_indexed = |room: &LaneRoom| {
        let is_stale = state.stale_queues.due(&queue_of(room)).is_some_and(|due| due <= due_by);
        is_flushed && state.partitions.is_complete(&room.lane) && !is_stale
    };
    let (by_index, by_store): (Vec<LaneRoom>, Vec<LaneRoom>) = rooms.iter().cloned().partition(is_indexed);
    let (mut found, unknown) = if places_in_all(&rooms) <= most {
        let ((mut found, unknown), directly) =
            tokio::join!(indexed::claim(state, by_index, most, terms), direct::claim(state, by_store, most, terms));
        found.merge(directly);
        (found, unknown)
    } else {
        // How much one finds decides how much is left for the other.
        let (mut found, unknown) = indexed::claim(state, by_index, most, terms).await;
        found.merge(direct::claim(state, by_store, most.saturating_sub(found.count()), terms).await);
        (found, unknown)
    };
    // The rooms for which the index could not answer.
    found.merge(direct::claim(state, unknown, most.saturating_sub(found.count()), terms).await);
    let claims = found.into_claims(rooms)?;
    for ClaimedTask { task, .. } in &claims.claimed {
        state.claimed_queues.remember(task.id, claimed_from(task));
    }
    Ok(claims)
}

/// The parameters of all tasks of one claim.
#[derive(Clone, Copy)]
struct Terms {
    due_by: Timestamp,
    lease: LeaseTerms,
    now: Timestamp,
}

/// The class of a lane that a room belongs to.
fn queue_of(room: &LaneRoom) -> Queue {
    (room.lane.clone(), room.class)
}

/// How many tasks fit into a room.
fn places(room: &LaneRoom) -> usize {
    room.slots.saturating_add(room.ahead)
}

fn places_in_all(rooms: &[LaneRoom]) -> usize {
    rooms.iter().map(places).fold(0, usize::saturating_add)
}

/// The class of a lane that a task was in before it was claimed: the claim counted an attempt.
pub(super) fn claimed_from(task: &Task) -> Queue {
    (task.lane.clone(), if task.attempt_in_run() <= 1 { Class::First } else { Class::Retry })
}

/// The results for each class of a lane.
#[derive(Default)]
struct Found {
    claimed: BTreeMap<Queue, Vec<ClaimedTask>>,
    left: BTreeMap<Queue, Option<Timestamp>>,
    /// Why some rooms have no answer.
    error: Option<Error>,
}

impl Found {
    fn add(&mut self, claimed: Vec<ClaimedTask>) {
        for claimed in claimed {
            self.claimed.entry(claimed_from(&claimed.task)).or_default().push(claimed);
        }
    }

    fn merge(&mut self, other: Found) {
        other.claimed.into_values().for_each(|claimed| self.add(claimed));
        self.left.extend(other.left);
        self.error = self.error.take().or(other.error);
    }

    /// How many tasks were claimed.
    fn count(&self) -> usize {
        self.claimed.values().map(Vec::len).sum()
    }

    /// The answer, room by room in the order of the request. Claimed tasks must be returned, whatever else failed.
    fn into_claims(mut self, rooms: Vec<LaneRoom>) -> Result<Claims, Error> {
        match self.error.take() {
            Some(error) if self.claimed.is_empty() => return Err(error),
            Some(error) => tracing::warn!(%error, "claiming failed for some lanes, trying again"),
            None => {}
        }
        let mut claims = Claims::default();
        for LaneRoom { lane, class, .. } in rooms {
            let queue = (lane, class);
            let mut claimed = mem::take(self.claimed.entry(queue.clone()).or_default());
            claimed.sort_by_key(|claimed| (claimed.task.next_attempt_at, claimed.task.id));
            claims.claimed.extend(claimed);
            let next_due = self.left.remove(&queue).flatten();
            let (lane, class) = queue;
            claims.lanes.push(LaneDue { lane, class, next_due });
        }
        Ok(claims)
    }
}
