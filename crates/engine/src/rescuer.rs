//! Takes over attempts whose lease ran out: their worker died, or lost touch with the store.
//!
//! The attempt counts, and its outcome is "unknown". The rescuer settles with the token that it found, so if the worker
//! comes back after all, whichever of the two settles first wins and the other changes nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use redrive_core::planted::{self, Bug};
use redrive_core::{Timestamp, decide};
use redrive_store::{Claimed, Error};

use crate::attempt::{cut_off, standing};
use crate::claimer::policy_of;
use crate::settle::settle;
use crate::shared::{Phase, Shared};

/// How many leases one step reads.
const STEP: usize = 256;

/// Runs until the engine drains: once at the start, then at a slow pace.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut is_due = true;
    loop {
        if is_due || may_find_something(&shared) {
            is_due = match rescue(&shared).await {
                Ok(()) => false,
                Err(error) => {
                    tracing::warn!(%error, "looking for leases that ran out failed, trying again");
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

/// On an exclusive store nobody but this process holds leases: once the last one that it was given has run out there is
/// nothing to find, and an idle engine asks nothing.
fn may_find_something(shared: &Shared) -> bool {
    let leased_until = Timestamp::from_millis(shared.leased_until.load(Ordering::Relaxed));
    !shared.store.is_exclusive() || shared.clock.now() < leased_until.after(2 * shared.options.rescue_every)
}

/// Settles everything whose lease has run out by now.
pub(crate) async fn rescue(shared: &Shared) -> Result<(), Error> {
    if planted::is(Bug::NoRescue) {
        return Ok(());
    }
    loop {
        let expired = shared.store.expired(shared.clock.now(), STEP).await?;
        let is_last = expired.len() < STEP;
        for claimed in expired {
            take_over(shared, &claimed).await?;
        }
        if is_last {
            return Ok(());
        }
    }
}

async fn take_over(shared: &Shared, claimed: &Claimed) -> Result<(), Error> {
    let policy = policy_of(shared, claimed).await?;
    let now = shared.clock.now();
    let decision = decide::after_lost_lease(&policy.policy, &standing(shared, claimed), now, shared.entropy.unit());
    tracing::warn!(
        task = %claimed.task.id,
        dependency = %claimed.task.lane.dependency,
        attempt = claimed.task.attempt_number,
        "taking over an attempt whose lease ran out"
    );
    settle(shared, claimed, cut_off(claimed, decision, None, now)).await
}
