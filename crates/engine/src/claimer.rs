//! Sleeps until a lane with room has due work, claims it durably, and starts the attempts.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::planted::{self, Bug};
use redrive_store::{Error, LaneDue};

use crate::attempt;
use crate::lanes::NextLook;
use crate::mistakes;
use crate::outage;
use crate::shared::{Phase, Shared};

/// The wait before the lanes are read again that the store would not show.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest sleep before another look at the clock on the wall, which may have jumped meanwhile.
const LONGEST_NAP: Duration = Duration::from_secs(30);

/// Runs until the engine drains.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut failures = 0;
    loop {
        tokio::select! {
            biased;
            () = shared.reached(Phase::Draining) => return,
            () = wait_for_turn(&shared) => {}
        }
        // It may have become uncertain during the wait.
        if !shared.clock.is_certain() {
            continue;
        }
        let Some((turns, request)) = shared.lanes.take_turns(shared.lease_terms()) else { continue };
        let begun = shared.clock.elapsed();
        match shared.store.claim(request).await {
            Ok(claims) => {
                failures = 0;
                shared.store_worked("claiming");
                let took = shared.clock.elapsed().saturating_sub(begun);
                for (claimed, seat) in shared.lanes.claimed(&turns, claims, took) {
                    attempt::start(&shared, claimed, None, seat);
                }
            }
            Err(error) => {
                shared.store_failed("claiming", &error);
                match planted::is(Bug::ClaimErrorKeepsRoom) {
                    true => mistakes::keep_room(&shared, &turns),
                    false => shared.lanes.claim_failed(&turns, !planted::is(Bug::ClaimErrorForgetsLane)),
                }
                tokio::select! {
                    biased;
                    () = shared.reached(Phase::Draining) => return,
                    () = shared.clock.sleep(outage::wait(failures, shared.entropy.unit())) => {}
                }
                failures += 1;
            }
        }
    }
}

async fn wait_for_turn(shared: &Shared) {
    shared.clock.certain().await;
    let NextLook::At(due, change) = shared.lanes.next_look() else { return };
    let until_due = due.map(|due| due.since(shared.clock.now()).min(LONGEST_NAP));
    let until_change = change.map(|change| change.saturating_sub(shared.clock.elapsed()));
    match [until_due, until_change].into_iter().flatten().min() {
        Some(Duration::ZERO) => {}
        Some(wait) => tokio::select! {
            biased;
            () = shared.lanes.changed() => {}
            () = shared.clock.sleep(wait) => {}
        },
        None => shared.lanes.changed().await,
    }
}

/// Fills the lanes from the store: at the start, and on a shared store again and again, for what others left there.
pub(crate) async fn rebuild(shared: &Shared) -> Result<(), Error> {
    let (step, mut after) = (shared.options.steps.rebuild, None);
    loop {
        let lanes = shared.store.pending_lanes(after.take(), step).await?;
        let is_last = lanes.len() < step;
        after = lanes.last().map(|last| (last.lane.clone(), last.class));
        for LaneDue { lane, class, next_due } in lanes {
            let is_due = |due| !planted::is(Bug::RebuildWithoutWaiting) || due <= shared.clock.now();
            if let Some(due) = next_due.filter(|due| is_due(*due)) {
                shared.lanes.note_due(&lane, class, due);
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
            Ok(()) => {
                shared.store_worked("reading the lanes");
                (!shared.store.is_exclusive()).then_some(shared.options.look_around_every)
            }
            Err(error) => {
                shared.store_failed("reading the lanes", &error);
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
