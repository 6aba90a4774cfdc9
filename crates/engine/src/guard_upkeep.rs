//! The guards and the store: what is restored at the start, and kept with every claim and settlement. What operators set
//! is read at the start and, on a shared store, before each look of the lane scan.

use redrive_core::Lane;
use redrive_store::{Error, GuardState};

use crate::engine_state::EngineState;

/// How many lanes are read at a time.
const PAGE: usize = 1_000;

/// Restores the guards of lanes, and applies what operators have set.
pub(crate) async fn restore(shared: &EngineState) -> Result<(), Error> {
    if let Some(guards) = shared.store.guard_states() {
        let mut after = None;
        loop {
            let page = guards.kept(after, PAGE).await?;
            after = page.last().map(|kept| kept.lane.clone());
            let is_last = page.len() < PAGE;
            for GuardState { lane, state } in page {
                if let Some(state) = state {
                    shared.lanes.restore_guards(&lane, state);
                }
            }
            if is_last {
                break;
            }
        }
    }
    read_controls(shared).await
}

/// Reads what operators have set for lanes, and applies it.
pub(crate) async fn read_controls(shared: &EngineState) -> Result<(), Error> {
    let mut all = Vec::new();
    loop {
        let after = all.last().map(|(lane, _): &(Lane, _)| lane.clone());
        let page = shared.store.controls().list(after, PAGE).await?;
        let is_last = page.len() < PAGE;
        all.extend(page);
        if is_last {
            break;
        }
    }
    shared.lanes.set_controls(all);
    Ok(())
}

/// Has the store keep the guards that changed, with the call that follows.
pub(crate) fn keep(shared: &EngineState) {
    if let Some(guards) = shared.store.guard_states() {
        let changed = shared.lanes.take_changed_guards();
        if !changed.is_empty() {
            guards.keep(changed.into_iter().map(|(lane, state)| GuardState { lane, state }).collect());
        }
    }
}
