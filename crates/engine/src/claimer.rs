//! Claimer: sleeps until a lane with room has due work, claims it durably, and starts the attempts.

use std::sync::Arc;
use std::time::Duration;

use crate::attempt;
use crate::engine_state::{EngineState, Phase};
use crate::guard_upkeep;
use crate::lanes::NextLook;
use crate::store_backoff;

/// The longest sleep before the wall clock is read again, which may have jumped meanwhile.
const LONGEST_NAP: Duration = Duration::from_secs(30);

/// Runs until the engine drains.
pub(crate) async fn run(shared: Arc<EngineState>) {
    let mut failures = 0;
    loop {
        tokio::select! {
            biased;
            () = shared.reached(Phase::Draining) => return,
            () = wait_for_turn(&shared) => {}
        }
        // The time may have become uncertain during the wait.
        if !shared.clock.is_certain() {
            continue;
        }
        let Some((turns, request)) = shared.lanes.take_turns(shared.lease_terms()) else { continue };
        guard_upkeep::keep(&shared);
        let begun = shared.clock.elapsed();
        match shared.store.tasks().claim(request).await {
            Ok(claims) => {
                failures = 0;
                shared.store_worked("claiming");
                let took = shared.clock.elapsed().saturating_sub(begun);
                for (claimed, reservation) in shared.lanes.claimed(&turns, claims, took) {
                    attempt::start(&shared, claimed, None, reservation);
                }
            }
            Err(error) => {
                shared.store_failed("claiming", &error);
                shared.lanes.claim_failed(&turns);
                tokio::select! {
                    biased;
                    () = shared.reached(Phase::Draining) => return,
                    () = shared.clock.sleep(store_backoff::wait(failures, shared.entropy.unit())) => {}
                }
                failures += 1;
            }
        }
    }
}

async fn wait_for_turn(shared: &EngineState) {
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
