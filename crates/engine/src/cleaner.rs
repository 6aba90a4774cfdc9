//! Cleaner: removes ended tasks after their retention, in small steps so that writers do not wait.

use std::sync::Arc;
use std::time::Duration;

use redrive_store::{CleanFrom, Error};

use crate::engine_state::{EngineState, Phase};
use crate::events::Report;

/// The pause between two steps, so that callers come first.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs until the engine drains.
pub(crate) async fn run(shared: Arc<EngineState>) {
    loop {
        tokio::select! {
            biased;
            () = shared.reached(Phase::Draining) => return,
            () = shared.clock.sleep(shared.options.clean_every) => {}
        }
        if !shared.clock.is_certain() {
            continue;
        }
        clean_guards(&shared).await;
        match clean(&shared).await {
            Ok(0) => {}
            Ok(removed) => shared.events.report(Report::Cleaned(removed)),
            Err(error) => shared.events.report(Report::CleaningFailed(&error)),
        }
    }
}

/// Removes shared guards that have not changed for a while.
async fn clean_guards(shared: &EngineState) {
    let Some(peers) = shared.store.shared() else { return };
    let limit = shared.options.steps.clean;
    while shared.phase() == Phase::Running {
        match peers.guards().clean(shared.clock.now(), limit).await {
            Ok(removed) if removed < limit => return,
            Ok(_) => shared.clock.sleep(PAUSE).await,
            Err(error) => return shared.events.report(Report::CleaningFailed(&error)),
        }
    }
}

/// Runs one whole pass. Returns how many tasks it removed.
pub(crate) async fn clean(shared: &EngineState) -> Result<usize, Error> {
    let ended_before = shared.clock.now().before(shared.options.retention);
    let mut from = CleanFrom::Start;
    let mut removed = 0;
    while shared.phase() == Phase::Running {
        let step = shared.store.upkeep().clean(ended_before, from, shared.options.steps.clean).await?;
        removed += step.removed;
        let Some(next) = step.next else { break };
        from = next;
        shared.clock.sleep(PAUSE).await;
    }
    Ok(removed)
}
