//! Claiming by the index.

use std::collections::BTreeMap;

use redrive_core::{Lane, Timestamp};
use redrive_store::{Claimed, Error, Known, LaneRoom, LeaseTerms, Waiting};

use super::Found;
use crate::schedule::Take;
use crate::state::State;
use crate::unsaid::Change;

/// How often a lane is asked again within one claim because what it gave was out of date.
const ROUNDS: usize = 4;

/// Takes what is due from the index and has the store confirm it. Also answers the lanes that the index does not know
/// well enough, each with the room that it still has.
pub(super) async fn claim(
    state: &State,
    mut turns: Vec<LaneRoom>,
    lease: LeaseTerms,
    now: Timestamp,
) -> (Found, Vec<LaneRoom>) {
    let (mut found, mut unknown) = (Found::default(), Vec::new());
    for _ in 0..ROUNDS {
        if turns.is_empty() {
            break;
        }
        let taken = take(state, &turns, &mut unknown, &mut found, now).await;
        turns.retain(|turn| found.left.contains_key(&turn.lane));
        match confirm(state, taken, lease, now).await {
            Ok(claimed) => turns = found.unfilled(turns, claimed, now),
            Err(error) => {
                found.error = Some(error);
                // All of it was put back: what was due before is due now.
                found.left.values_mut().for_each(|next_due| *next_due = Some(now));
                break;
            }
        }
    }
    (found, unknown)
}

async fn take(
    state: &State,
    turns: &[LaneRoom],
    unknown: &mut Vec<LaneRoom>,
    found: &mut Found,
    now: Timestamp,
) -> Vec<Waiting> {
    let mut tasks = Vec::new();
    for (turn, answer) in turns.iter().zip(state.schedule.take(turns, now).await) {
        match answer {
            Ok(Take::Taken(taken)) => {
                // A suspect that is not due yet is due then: the index does not know of it.
                let next_due = [taken.next_due, state.suspects.due(&turn.lane)].into_iter().flatten().min();
                found.left.insert(turn.lane.clone(), next_due);
                tasks.extend(taken.tasks);
                continue;
            }
            Ok(Take::Incomplete) => state.partitions.incomplete(&turn.lane),
            Err(failure) => {
                state.partitions.failed(&turn.lane, &failure);
                state.suspects.suspect(&turn.lane, now);
            }
        }
        found.left.remove(&turn.lane);
        unknown.push(turn.clone());
    }
    tasks
}

/// Has the store claim what was taken, or puts it back.
async fn confirm(state: &State, taken: Vec<Waiting>, lease: LeaseTerms, now: Timestamp) -> Result<Vec<Claimed>, Error> {
    let Some(shared) = state.store.shared().filter(|_| !taken.is_empty()) else { return Ok(Vec::new()) };
    let known = |task: &Waiting| Known { tenant: task.lane.tenant.clone(), id: task.id, token: task.token };
    let confirmed = shared.claim_known(taken.iter().map(known).collect(), lease, now).await;
    if confirmed.is_err() {
        state.note(taken.into_iter().map(|task| Change::Waiting { task, is_due: false }));
    }
    confirmed
}

impl Found {
    /// Adds what was claimed, and answers the lanes that have both room and due work left, because some of what they
    /// gave was out of date.
    fn unfilled(&mut self, turns: Vec<LaneRoom>, claimed: Vec<Claimed>, now: Timestamp) -> Vec<LaneRoom> {
        let mut count: BTreeMap<Lane, usize> = BTreeMap::new();
        claimed.iter().for_each(|claimed| *count.entry(claimed.task.lane.clone()).or_default() += 1);
        self.add(claimed);
        let still = |turn: LaneRoom| {
            let room = turn.room.saturating_sub(count.get(&turn.lane).copied().unwrap_or_default());
            let is_due = self.left.get(&turn.lane).copied().flatten().is_some_and(|due| due <= now);
            (room > 0 && is_due).then_some(LaneRoom { room, ..turn })
        };
        turns.into_iter().filter_map(still).collect()
    }
}
