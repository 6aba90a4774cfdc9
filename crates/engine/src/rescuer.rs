//! Rescuer: takes over attempts whose lease expired because their worker died or lost its connection to the store.
//!
//! The attempt counts, and its outcome is "unknown". The rescuer settles with the token that it found. If the worker
//! comes back, the first of the two to settle wins and the other changes nothing.

use std::sync::Arc;

use redrive_core::{Decision, Reason, Status, decide};
use redrive_store::{ClaimedTask, Error};

use crate::attempt::{interrupted, standing};
use crate::engine_state::{EngineState, Phase};
use crate::settle::{SettledBy, settle};

/// Runs until the engine drains: once at the start, then at a slow pace.
pub(crate) async fn run(shared: Arc<EngineState>) {
    let mut is_due = true;
    loop {
        if (is_due || may_find_something(&shared)) && shared.clock.is_certain() {
            is_due = match rescue(&shared).await {
                Ok(()) => {
                    shared.store_worked("looking for leases that ran out");
                    false
                }
                Err(error) => {
                    shared.store_failed("looking for leases that ran out", &error);
                    true
                }
            };
        }
        tokio::select! {
            biased;
            () = shared.reached(Phase::Draining) => return,
            () = shared.clock.sleep(shared.options.rescue_every) => {}
        }
    }
}

/// Whether an expired lease is possible. On an exclusive store only this process holds leases: if it abandoned none,
/// there is nothing to find, and an idle engine does not query the store.
fn may_find_something(shared: &EngineState) -> bool {
    !shared.store.is_exclusive() || !shared.abandoned_leases.is_empty()
}

/// Settles every attempt whose lease has expired. One that cannot be settled does not delay the others of its page.
pub(crate) async fn rescue(shared: &EngineState) -> Result<(), Error> {
    let is_exclusive = shared.store.is_exclusive();
    loop {
        let now = shared.clock.now();
        let ran_out = shared.abandoned_leases.ran_out(now);
        // On an exclusive store, this process settles the attempts that it still works on, whatever the clock shows.
        let is_mine = |claimed: &ClaimedTask| is_exclusive && shared.in_flight.has(claimed.task.id);
        let step = shared.options.steps.rescue + if is_exclusive { shared.in_flight.count() } else { 0 };
        let mut expired = shared.store.upkeep().expired_leases(now, step).await?;
        let is_last = expired.len() < step;
        expired.retain(|claimed| !is_mine(claimed));
        let mut outcome = Ok(());
        for claimed in expired {
            outcome = outcome.and(take_over(shared, &claimed).await);
        }
        outcome?;
        if is_last {
            shared.abandoned_leases.forget(&ran_out);
            return Ok(());
        }
    }
}

async fn take_over(shared: &EngineState, claimed: &ClaimedTask) -> Result<(), Error> {
    let policy = shared.policies.of(claimed).await;
    let now = shared.clock.now();
    let decision = match policy {
        Ok(policy) => decide::after_lost_lease(&policy.policy, &standing(shared, claimed), now, shared.entropy.unit()),
        Err(Error::Corrupt(_)) => Decision::End(Status::Failed, Some(Reason::PolicyLost)),
        Err(error) => return Err(error),
    };
    settle(shared, claimed, interrupted(claimed, decision, None, now), SettledBy::Rescuer).await
}
