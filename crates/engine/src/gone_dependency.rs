//! A dependency that seems to be gone for good: an event, and a pause if the task's policy says `pauseOnGone`.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::guards::{Gone, GoneSign, Note};
use redrive_core::{Policy, Task};

use crate::engine_state::{EngineState, Phase};
use crate::events::Event;
use crate::guard_upkeep;

/// The wait before a pause is stored again that could not be stored.
const PAUSE_AGAIN: Duration = Duration::from_secs(1);

/// Raises the event, and pauses the lane if the policy says so.
pub(crate) fn found(shared: &Arc<EngineState>, task: &Task, policy: &Policy, GoneSign { gone, is_event }: GoneSign) {
    if is_event {
        shared.events.emit(Event::DependencyGone(task, gone));
    }
    if !policy.pause_on_gone || shared.lanes.controls(&task.lane).pause.is_some() {
        return;
    }
    let (spawner, shared, task) = (shared.spawner.clone(), shared.clone(), task.clone());
    spawner.spawn(Box::pin(async move {
        tokio::select! {
            biased;
            () = shared.reached(Phase::Draining) => {}
            () = pause(&shared, &task, gone) => {}
        }
    }));
}

async fn pause(shared: &EngineState, task: &Task, gone: Gone) {
    let reason = match gone {
        Gone::Answered => "it answered 410 Gone",
        Gone::NoSuccessSince(_) => "no attempt has succeeded for 24 hours",
    };
    let note = Note {
        at: shared.clock.now(),
        by: format!("policy {}", task.policy.id.as_str()),
        reason: Some(format!("{reason} (pauseOnGone)")),
    };
    loop {
        // A pause that an operator has set stays as it is.
        let changed = guard_upkeep::change_controls(shared, &task.lane, |controls| {
            controls.pause.get_or_insert_with(|| note.clone());
        });
        match changed.await {
            Ok(controls) => {
                shared.store_worked("pausing a dependency");
                if controls.pause == Some(note) {
                    shared.events.emit(Event::PausedOnGone(task));
                }
                return;
            }
            Err(error) => shared.store_failed("pausing a dependency", &error),
        }
        shared.clock.sleep(PAUSE_AGAIN).await;
    }
}
