//! Cleaner: removes ended tasks after their retention, and idempotency records and guards that have expired, in small
//! steps so that writers do not wait.

use std::sync::Arc;
use std::time::Duration;

use redrive_store::{CleanFrom, Error};

use crate::engine_state::{EngineState, Phase};
use crate::events::Report;

/// The pause between two steps, so that callers come first.
const PAUSE: Duration = Duration::from_millis(20);

/// The most steps over records in one pass: records that expire as fast as they are removed do not keep the pass from ended
/// tasks. The next pass follows at once.
const MOST_RECORD_STEPS: usize = 1_000;

/// Whether a pass removed all that had expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Whole,
    /// It took its most steps, and there may be more.
    Partial,
}

/// Runs until the engine drains.
pub(crate) async fn run(shared: Arc<EngineState>) {
    let mut last = Pass::Whole;
    loop {
        let pause = match last {
            Pass::Whole => shared.options.clean_every,
            Pass::Partial => PAUSE,
        };
        tokio::select! {
            biased;
            () = shared.reached(Phase::Draining) => return,
            () = shared.clock.sleep(pause) => {}
        }
        last = Pass::Whole;
        if !shared.clock.is_certain() {
            continue;
        }
        clean_guards(&shared).await;
        last = clean_records(&shared).await;
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

/// Removes idempotency records that have expired, in a bounded number of steps.
async fn clean_records(shared: &EngineState) -> Pass {
    let limit = shared.options.steps.clean;
    let (mut removed, mut steps, mut pass) = (0, 0, Pass::Partial);
    while shared.phase() == Phase::Running && steps < MOST_RECORD_STEPS {
        match shared.store.records().clean(shared.clock.now(), limit).await {
            Ok(step) => {
                removed += step;
                if step < limit {
                    pass = Pass::Whole;
                    break;
                }
            }
            Err(error) => {
                shared.events.report(Report::CleaningFailed(&error));
                pass = Pass::Whole;
                break;
            }
        }
        steps += 1;
        shared.clock.sleep(PAUSE).await;
    }
    if removed > 0 {
        shared.events.report(Report::RecordsCleaned(removed));
    }
    pass
}

/// Runs one whole pass over the tasks. Returns how many tasks it removed.
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
