//! Claiming from the store alone.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use redrive_core::{Lane, Timestamp};
use redrive_store::{Claimed, Claims, LaneDue, LaneRoom, LeaseTerms, Token};

use super::Found;
use crate::schedule::Gone;
use crate::state::State;
use crate::unsaid::Change;

/// Claims from the store, and brings the index up to date with what came of it.
pub(super) async fn claim(state: &State, turns: Vec<LaneRoom>, lease: LeaseTerms, now: Timestamp) -> Found {
    let mut found = Found::default();
    if turns.is_empty() {
        return found;
    }
    match state.store.claim(turns.clone(), lease, now).await {
        Ok(claims) => {
            bring_up_to_date(state, &claims).await;
            found.left.extend(claims.lanes.into_iter().map(|left| (left.lane, left.next_due)));
            found.add(claims.claimed);
        }
        Err(error) => {
            found.error = Some(error);
            found.left.extend(turns.into_iter().map(|turn| (turn.lane, Some(now))));
        }
    }
    found
}

/// Removes what was claimed from the index.
async fn bring_up_to_date(state: &State, claims: &Claims) {
    let mut gone: BTreeMap<&Lane, Vec<Gone>> = BTreeMap::new();
    for claimed in &claims.claimed {
        gone.entry(&claimed.task.lane).or_default().push(as_it_waited(claimed));
    }
    let removing = claims.lanes.iter().map(|left| remove(state, left, gone.remove(&left.lane).unwrap_or_default()));
    join_all(removing.collect::<Vec<_>>()).await;
}

/// A suspect none of whose tasks were in the index stays one; whatever else, there is no hurry.
async fn remove(state: &State, left: &LaneDue, gone: Vec<Gone>) {
    let lane = &left.lane;
    if state.suspects.due(lane).is_none() || !state.partitions.is_complete(lane) {
        return state.note(gone.into_iter().map(Change::Gone));
    }
    state.suspects.clear(lane);
    if gone.is_empty() {
        return;
    }
    match (state.schedule.remove(gone).await, left.next_due) {
        (Ok(0), Some(next_due)) => state.suspects.suspect(lane, next_due),
        (Ok(_), _) => {}
        (Err(failure), _) => state.partitions.failed(lane, &failure),
    }
}

/// What the index called a task before it was claimed. Every claim adds one to the token; were it otherwise, something
/// out of date would stay in the index, and be left out when it is taken.
fn as_it_waited(claimed: &Claimed) -> Gone {
    let token = Token(claimed.lease.token.0.saturating_sub(1));
    Gone { lane: claimed.task.lane.clone(), id: claimed.task.id, token }
}
