//! Claims: due tasks are taken from the index, and the store confirms each.
//!
//! Which tasks are claimed is the store's decision alone: it claims those of the taken ones that are pending, due by the
//! same `now` and of the same token, and whatever else it was asked for directly. So nothing that the index says, or does
//! not say, can make a task be sent twice, too early or after its end. What can go wrong is that a task is *missing* from
//! the index, and each way for that to happen ends with the task being found:
//!
//! - The store left it out although it is pending. It was taken by a score that is its due time, and `now` is the same in
//!   both places, whatever the clocks of other processes say: so it is due in the store too, unless it was changed at that
//!   very moment. Whoever changes a task adds it again with what it is then. (A change that is taken back after all, by
//!   a process that dies in the middle of it, is one for the look below.)
//! - The store did not answer. All that were taken are put back, with their old due times; those that were claimed
//!   nevertheless are out of date then, and are left out when they are taken again.
//! - Redis did not answer. The lane becomes a suspect (see [`suspects`](crate::suspects)) and is claimed from the store.
//! - This process dies. The task is pending in the store, overdue, and not in the index: every other process finds that
//!   out with its next look at the store, and claims the lane from there.

mod direct;
mod indexed;

use std::collections::BTreeMap;
use std::mem;

use redrive_core::{Lane, Timestamp};
use redrive_store::{Claimed, Claims, Error, LaneDue, LaneRoom, LeaseTerms};

use crate::state::State;

pub(super) async fn claim(
    state: &State,
    lanes: Vec<LaneRoom>,
    lease: LeaseTerms,
    now: Timestamp,
) -> Result<Claims, Error> {
    let is_flushed = state.unsaid.flushed().await;
    let is_indexed = |turn: &LaneRoom| {
        let is_suspect = state.suspects.due(&turn.lane).is_some_and(|due| due <= now);
        is_flushed && state.partitions.is_complete(&turn.lane) && !is_suspect
    };
    let (by_index, by_store): (Vec<LaneRoom>, Vec<LaneRoom>) = lanes.iter().cloned().partition(is_indexed);
    let ((mut found, unknown), directly) =
        tokio::join!(indexed::claim(state, by_index, lease, now), direct::claim(state, by_store, lease, now));
    found.merge(directly);
    // What the index turned out not to know well enough.
    found.merge(direct::claim(state, unknown, lease, now).await);
    let claims = found.into_claims(lanes)?;
    for Claimed { task, .. } in &claims.claimed {
        state.underway.remember(task.id, task.lane.clone());
    }
    Ok(claims)
}

/// What was found for each lane.
#[derive(Default)]
struct Found {
    claimed: BTreeMap<Lane, Vec<Claimed>>,
    left: BTreeMap<Lane, Option<Timestamp>>,
    /// Why some lanes have no answer.
    error: Option<Error>,
}

impl Found {
    fn add(&mut self, claimed: Vec<Claimed>) {
        for claimed in claimed {
            self.claimed.entry(claimed.task.lane.clone()).or_default().push(claimed);
        }
    }

    fn merge(&mut self, other: Found) {
        other.claimed.into_values().for_each(|claimed| self.add(claimed));
        self.left.extend(other.left);
        self.error = self.error.take().or(other.error);
    }

    /// The answer, lane by lane in the order asked. What was claimed must be answered, whatever else failed.
    fn into_claims(mut self, lanes: Vec<LaneRoom>) -> Result<Claims, Error> {
        match self.error.take() {
            Some(error) if self.claimed.is_empty() => return Err(error),
            Some(error) => tracing::warn!(%error, "claiming failed for some lanes, trying again"),
            None => {}
        }
        let mut claims = Claims::default();
        for LaneRoom { lane, .. } in lanes {
            let mut claimed = mem::take(self.claimed.entry(lane.clone()).or_default());
            claimed.sort_by_key(|claimed| (claimed.task.next_attempt_at, claimed.task.id));
            claims.claimed.extend(claimed);
            let next_due = self.left.remove(&lane).flatten();
            claims.lanes.push(LaneDue { lane, next_due });
        }
        Ok(claims)
    }
}
