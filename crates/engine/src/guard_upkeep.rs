//! The guards and the store: what is restored at the start, and kept with every claim and settlement. What operators set
//! is read at the start and, on a shared store, before each look of the lane scan. Guards that several processes share are
//! exchanged by `guard_exchange`.

use redrive_core::Lane;
use redrive_core::guards::Controls;
use redrive_store::{Error, GuardState};

use crate::engine_state::EngineState;
use crate::guard_exchange;

/// How many lanes are read at a time.
const PAGE: usize = 1_000;
/// How often a change of a lane's controls is tried. A try fails only if another process has changed them meanwhile.
const CONTROLS_TRIES: usize = 20;

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
    read_controls(shared).await?;
    if let Some(peers) = shared.store.shared() {
        // Before the first claim: a breaker that is open stays open.
        guard_exchange::find_not_closed(shared).await?;
        while guard_exchange::exchange_due(shared, peers.guards()).await {}
    }
    Ok(())
}

/// Reads what operators have set for lanes, perhaps through another process. If it fails, the next look reads it.
pub(crate) async fn reread_controls(shared: &EngineState) {
    // A change that is under way reads the controls itself. Controls that were read before it must not replace its own.
    let Ok(_no_change) = shared.changing_controls.try_lock() else { return };
    match read_controls(shared).await {
        Ok(()) => shared.store_worked("reading lane controls"),
        Err(error) => shared.store_failed("reading lane controls", &error),
    }
}

/// Finds breakers that another process has opened, if its announcement was lost. If it fails, the next look finds them.
pub(crate) async fn find_open_breakers(shared: &EngineState) {
    match guard_exchange::find_not_closed(shared).await {
        Ok(()) => shared.store_worked("reading breakers"),
        Err(error) => shared.store_failed("reading breakers", &error),
    }
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

/// Changes what operators have set for a lane. Durable once this returns. Returns what is set now.
pub(crate) async fn change_controls(
    shared: &EngineState,
    lane: &Lane,
    change: impl Fn(&mut Controls),
) -> Result<Controls, Error> {
    let _one_at_a_time = shared.changing_controls.lock().await;
    for _ in 0..CONTROLS_TRIES {
        read_controls(shared).await?;
        let before = shared.lanes.controls(lane);
        let mut controls = before.clone();
        change(&mut controls);
        if shared.store.controls().replace(lane.clone(), before, controls.clone()).await? {
            read_controls(shared).await?;
            return Ok(controls);
        }
    }
    let reason = format!("other processes changed the controls of {lane} at the same time; try again");
    Err(Error::Unavailable(reason))
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
