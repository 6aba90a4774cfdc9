//! Sleeps until a lane with room has due work, claims it durably, and starts the attempts.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::planted::{self, Bug};
use redrive_store::{Claimed, Claims, Error, LaneDue, LaneRoom};

use crate::attempt;
use crate::mistakes;
use crate::policies::Resolved;
use crate::shared::{Phase, Shared};

/// The wait after a claim that the store refused.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest sleep before another look at the clock on the wall, which may have jumped meanwhile.
const LONGEST_NAP: Duration = Duration::from_secs(30);

/// Runs until the engine drains.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        tokio::select! {
            biased;
            () = shared.reached(Phase::Draining) => return,
            () = wait_for_turn(&shared) => {}
        }
        let turns = shared.lanes.take_turns(shared.clock.now());
        if turns.is_empty() {
            continue;
        }
        match shared.store.claim(turns.clone(), shared.lease_terms(), shared.clock.now()).await {
            Ok(claims) => start_all(&shared, turns, claims).await,
            Err(error) => {
                tracing::warn!(%error, "claiming failed, trying again");
                put_back(&shared, turns);
                shared.clock.sleep(PAUSE).await;
            }
        }
    }
}

async fn wait_for_turn(shared: &Shared) {
    let now = shared.clock.now();
    match shared.lanes.next_turn() {
        Some(due) if due <= now => {}
        Some(due) => tokio::select! {
            biased;
            () = shared.lanes.changed() => {}
            () = shared.clock.sleep(due.since(now).min(LONGEST_NAP)) => {}
        },
        None => shared.lanes.changed().await,
    }
}

async fn start_all(shared: &Arc<Shared>, turns: Vec<LaneRoom>, claims: Claims) {
    let Claims { claimed, lanes } = claims;
    let mut claimed = claimed.into_iter().peekable();
    for turn in turns {
        let mut of_lane = Vec::new();
        while let Some(task) = claimed.next_if(|claimed| claimed.task.lane == turn.lane) {
            of_lane.push(task);
        }
        let nothing = LaneDue { lane: turn.lane.clone(), next_due: None };
        let left = lanes.iter().find(|left| left.lane == turn.lane).unwrap_or(&nothing);
        let rooms = shared.lanes.claimed(&turn, of_lane.len(), left);
        for (claimed, room) in of_lane.into_iter().zip(rooms) {
            match policy_of(shared, &claimed).await {
                Ok(policy) => attempt::start(shared, claimed, policy, room),
                // Nothing was sent. The lease runs out, and the rescuer tries again.
                Err(error) => {
                    drop(shared.left_behind.hold(&claimed));
                    tracing::error!(task = %claimed.task.id, %error, "claimed a task whose policy cannot be read")
                }
            }
        }
    }
}

/// The rules that a claimed task pins, with its own overrides.
pub(crate) async fn policy_of(shared: &Shared, claimed: &Claimed) -> Result<Arc<Resolved>, Error> {
    let pinned = shared.policies.version(&claimed.task.lane.tenant, &claimed.task.policy).await?;
    match &claimed.request.overrides {
        None => Ok(pinned),
        Some(overrides) => pinned
            .with_overrides(overrides)
            .map(Arc::new)
            .map_err(|invalid| Error::Corrupt(format!("task {}: {invalid}", claimed.task.id))),
    }
}

/// The claim did not happen: the lanes have as much due as before.
fn put_back(shared: &Arc<Shared>, turns: Vec<LaneRoom>) {
    if planted::is(Bug::ClaimErrorKeepsRoom) {
        return mistakes::keep_room(shared, turns);
    }
    let now = shared.clock.now();
    for turn in turns {
        let next_due = Some(now).filter(|_| !planted::is(Bug::ClaimErrorForgetsLane));
        let left = LaneDue { lane: turn.lane.clone(), next_due };
        shared.lanes.claimed(&turn, 0, &left);
    }
}

/// Fills the lanes from the store: at the start, and on a shared store again and again, for what others left there.
pub(crate) async fn rebuild(shared: &Shared) -> Result<(), Error> {
    let (step, mut after) = (shared.options.steps.rebuild, None);
    loop {
        let lanes = shared.store.pending_lanes(after.take(), step).await?;
        let is_last = lanes.len() < step;
        after = lanes.last().map(|last| last.lane.clone());
        for LaneDue { lane, next_due } in lanes {
            let is_due = |due| !planted::is(Bug::RebuildWithoutWaiting) || due <= shared.clock.now();
            if let Some(due) = next_due.filter(|due| is_due(*due)) {
                shared.lanes.note_due(&lane, due);
            }
        }
        if is_last || planted::is(Bug::RebuildFirstPage) {
            return Ok(());
        }
    }
}

/// Rebuilds until it works, at the start and whenever the lanes were lost; on a shared store for ever, at a slow pace.
pub(crate) async fn keep_rebuilding(shared: Arc<Shared>) {
    loop {
        let again = match rebuild(&shared).await {
            Ok(()) if shared.store.is_exclusive() => None,
            Ok(()) => Some(shared.options.look_around_every),
            Err(error) => {
                tracing::warn!(%error, "reading the lanes failed, trying again");
                Some(PAUSE)
            }
        };
        tokio::select! {
            biased;
            () = shared.reached(Phase::Draining) => return,
            () = shared.schedule_lost.notified() => {}
            () = sleep_for(&shared, again) => {}
        }
    }
}

/// Sleeps, for ever if there is nothing to wake up for.
async fn sleep_for(shared: &Shared, wait: Option<Duration>) {
    match wait {
        Some(wait) => shared.clock.sleep(wait).await,
        None => std::future::pending().await,
    }
}
