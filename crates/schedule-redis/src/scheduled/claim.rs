//! Claims: due tasks are taken from the index, and the store confirms each.
//!
//! Which tasks are claimed is the store's decision alone: it claims those of the taken ones that are pending, due by the
//! same `now` and of the same token, and whatever else it was asked for directly. So nothing that the index says, or does
//! not say, can make a task be sent twice, too early or after its end. What can go wrong is that a task is *missing* from
//! the index, and each way for that to happen ends with the task being found:
//!
//! - The store left it out although it is pending. It was taken by a score that is its due time, and `now` is the same in
//!   both places, whatever the clocks of other processes say: so it is due in the store too, unless it was changed at that
//!   very moment. Whoever changes a task adds it again with what it is then.
//! - The store did not answer. All that were taken are put back, with their old due times; those that were claimed
//!   nevertheless are out of date then, and are left out when they are taken again.
//! - Redis did not answer. The lane becomes a suspect (see [`suspects`](crate::suspects)) and is claimed from the store.
//! - This process dies. The task is pending in the store, overdue, and not in the index: every other process finds that
//!   out with its next look at the store, and claims the lane from there.

use std::collections::BTreeMap;
use std::mem;

use futures_util::future::join_all;
use redrive_core::{Lane, Timestamp};
use redrive_store::{Claimed, Claims, Error, Known, LaneDue, LaneRoom, LeaseTerms, Token, Waiting};

use crate::schedule::{Gone, Take};
use crate::state::State;
use crate::unsaid::Change;

/// What was found for each lane.
#[derive(Default)]
struct Found {
    claimed: BTreeMap<Lane, Vec<Claimed>>,
    left: BTreeMap<Lane, Option<Timestamp>>,
    error: Option<Error>,
    is_any_answered: bool,
}

pub(crate) async fn claim(
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
    let (indexed, mut direct): (Vec<LaneRoom>, Vec<LaneRoom>) = lanes.iter().cloned().partition(is_indexed);
    let mut found = Found::default();
    let taken = take(state, indexed, &mut direct, &mut found, now).await;
    let (confirmed, claims) =
        tokio::join!(confirm(state, taken, lease, now), claim_directly(state, direct.clone(), lease, now));
    found.confirmed(confirmed, now);
    found.claimed_directly(claims, direct, now);
    let claims = found.into_claims(lanes)?;
    for Claimed { task, .. } in &claims.claimed {
        state.underway.remember(task.id, task.lane.clone());
    }
    Ok(claims)
}

/// Takes what is due from the index. Lanes that it does not know well enough join those that are claimed directly.
async fn take(
    state: &State,
    indexed: Vec<LaneRoom>,
    direct: &mut Vec<LaneRoom>,
    found: &mut Found,
    now: Timestamp,
) -> Vec<Waiting> {
    let answers = state.schedule.take(&indexed, now).await;
    let mut tasks = Vec::new();
    for (turn, answer) in indexed.into_iter().zip(answers) {
        match answer {
            Ok(Take::Taken(taken)) => {
                // A suspect that is not due yet is due then: the index does not know of it.
                let next_due = [taken.next_due, state.suspects.due(&turn.lane)].into_iter().flatten().min();
                found.left.insert(turn.lane, next_due);
                tasks.extend(taken.tasks);
            }
            Ok(Take::Incomplete) => {
                state.partitions.incomplete(&turn.lane);
                direct.push(turn);
            }
            Err(failure) => {
                state.partitions.failed(&turn.lane, &failure);
                state.suspects.suspect(&turn.lane, now);
                direct.push(turn);
            }
        }
    }
    tasks
}

/// Has the store claim what was taken, or puts it back.
async fn confirm(
    state: &State,
    taken: Vec<Waiting>,
    lease: LeaseTerms,
    now: Timestamp,
) -> Option<Result<Vec<Claimed>, Error>> {
    if taken.is_empty() {
        return None;
    }
    let shared = state.store.shared()?;
    let known = |task: &Waiting| Known { tenant: task.lane.tenant.clone(), id: task.id, token: task.token };
    let confirmed = shared.claim_known(taken.iter().map(known).collect(), lease, now).await;
    if confirmed.is_err() {
        state.note(taken.into_iter().map(|task| Change::Waiting { task, is_due: false }));
    }
    Some(confirmed)
}

/// Claims from the store alone, and brings the index up to date with what came of it.
async fn claim_directly(
    state: &State,
    turns: Vec<LaneRoom>,
    lease: LeaseTerms,
    now: Timestamp,
) -> Option<Result<Claims, Error>> {
    if turns.is_empty() {
        return None;
    }
    let claims = state.store.claim(turns, lease, now).await;
    if let Ok(claims) = &claims {
        let mut gone: BTreeMap<&Lane, Vec<Gone>> = BTreeMap::new();
        for claimed in &claims.claimed {
            gone.entry(&claimed.task.lane).or_default().push(as_it_waited(claimed));
        }
        join_all(claims.lanes.iter().map(|left| {
            let gone = gone.remove(&left.lane).unwrap_or_default();
            remove_claimed(state, left, gone)
        }))
        .await;
    }
    Some(claims)
}

/// Removes from the index what was claimed from the store. A suspect whose tasks were not in the index stays one.
async fn remove_claimed(state: &State, left: &LaneDue, gone: Vec<Gone>) {
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

impl Found {
    fn add(&mut self, claimed: Vec<Claimed>) {
        self.is_any_answered = true;
        for claimed in claimed {
            self.claimed.entry(claimed.task.lane.clone()).or_default().push(claimed);
        }
    }

    fn confirmed(&mut self, confirmed: Option<Result<Vec<Claimed>, Error>>, now: Timestamp) {
        match confirmed {
            Some(Ok(claimed)) => self.add(claimed),
            Some(Err(error)) => {
                self.error = Some(error);
                // All of it was put back: what was due before is due now.
                self.left.values_mut().for_each(|next_due| *next_due = Some(now));
            }
            None => self.is_any_answered |= !self.left.is_empty(),
        }
    }

    fn claimed_directly(&mut self, claims: Option<Result<Claims, Error>>, turns: Vec<LaneRoom>, now: Timestamp) {
        match claims {
            Some(Ok(claims)) => {
                self.add(claims.claimed);
                self.left.extend(claims.lanes.into_iter().map(|left| (left.lane, left.next_due)));
            }
            Some(Err(error)) => {
                self.error = Some(error);
                self.left.extend(turns.into_iter().map(|turn| (turn.lane, Some(now))));
            }
            None => {}
        }
    }

    /// The answer, lane by lane in the order asked. What was claimed must be answered, whatever else failed.
    fn into_claims(mut self, lanes: Vec<LaneRoom>) -> Result<Claims, Error> {
        match self.error.take() {
            Some(error) if !self.is_any_answered => return Err(error),
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
