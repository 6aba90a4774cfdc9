//! Claiming from the store without the index.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use redrive_store::{ClaimRequest, ClaimedTask, Claims, LaneDue, LaneRoom, Token};

use super::{Found, Terms, claimed_from, queue_of};
use crate::pending_changes::Change;
use crate::schedule::{Gone, Queue};
use crate::state::State;

/// Claims from the store, and updates the index with the outcome.
pub(super) async fn claim(state: &State, rooms: Vec<LaneRoom>, most: usize, terms: Terms) -> Found {
    let mut found = Found::default();
    if rooms.is_empty() {
        return found;
    }
    let Terms { due_by, lease, now } = terms;
    match state.store.tasks().claim(ClaimRequest { rooms: rooms.clone(), most, due_by, lease, now }).await {
        Ok(claims) => {
            bring_up_to_date(state, &claims).await;
            found.left.extend(claims.lanes.into_iter().map(|left| ((left.lane, left.class), left.next_due)));
            found.add(claims.claimed);
        }
        Err(error) => {
            found.error = Some(error);
            found.left.extend(rooms.iter().map(|room| (queue_of(room), Some(now))));
        }
    }
    found
}

/// Removes claimed tasks from the index.
async fn bring_up_to_date(state: &State, claims: &Claims) {
    let mut gone: BTreeMap<Queue, Vec<Gone>> = BTreeMap::new();
    for claimed in &claims.claimed {
        gone.entry(claimed_from(&claimed.task)).or_default().push(as_it_waited(claimed));
    }
    let removing = claims.lanes.iter().map(|left| {
        let queue = (left.lane.clone(), left.class);
        let gone = gone.remove(&queue).unwrap_or_default();
        remove(state, queue, left, gone)
    });
    join_all(removing.collect::<Vec<_>>()).await;
}

/// Removes tasks of one class of a lane. The class stays marked as stale if none of its tasks were in the index. For
/// any other class the removal is queued, because it is not urgent.
async fn remove(state: &State, queue: Queue, left: &LaneDue, gone: Vec<Gone>) {
    if state.stale_queues.due(&queue).is_none() || !state.partitions.is_complete(&left.lane) {
        return state.note(gone.into_iter().map(Change::Gone));
    }
    state.stale_queues.clear(&queue);
    if gone.is_empty() {
        return;
    }
    match (state.schedule.remove(gone).await, left.next_due) {
        (Ok(0), Some(next_due)) => state.stale_queues.mark(&queue, next_due),
        (Ok(_), _) => {}
        (Err(failure), _) => state.partitions.failed(&left.lane, &failure),
    }
}

/// The index entry of a task before it was claimed. Every claim adds one to the token. If that were not so, an outdated
/// entry would stay in the index, and the store would reject it when it is taken.
fn as_it_waited(claimed: &ClaimedTask) -> Gone {
    let token = Token(claimed.lease.token.0.saturating_sub(1));
    let (lane, class) = claimed_from(&claimed.task);
    Gone { lane, class, id: claimed.task.id, token }
}
