//! Cancelling tasks, and bringing them forward.

use redrive_core::Timestamp;

use super::state::State;
use crate::rules::{self, BringForward, Cancel};
use crate::{BringForwardOutcome, CancelOutcome, TaskKey};

impl State {
    pub(super) fn cancel(&mut self, key: &TaskKey, now: Timestamp) -> CancelOutcome {
        if self.entry(&key.tenant, key.id).is_none() {
            return CancelOutcome::NotFound;
        }
        let outcome = self.change(key.id, |entry| {
            let effect = rules::cancel(&mut entry.task, now);
            let task = Box::new(entry.task.clone());
            match effect {
                Cancel::Ended | Cancel::Requested => CancelOutcome::Done(task),
                Cancel::AlreadyEnded => CancelOutcome::AlreadyEnded(task),
            }
        });
        outcome.unwrap_or(CancelOutcome::NotFound)
    }

    pub(super) fn bring_forward(&mut self, key: &TaskKey, now: Timestamp) -> BringForwardOutcome {
        if self.entry(&key.tenant, key.id).is_none() {
            return BringForwardOutcome::NotFound;
        }
        let outcome = self.change(key.id, |entry| {
            let effect = rules::bring_forward(&mut entry.task, now);
            let task = Box::new(entry.task.clone());
            match effect {
                BringForward::Moved | BringForward::AlreadyDue => BringForwardOutcome::Done(task),
                BringForward::InFlight => BringForwardOutcome::InFlight(task),
                BringForward::AlreadyEnded => BringForwardOutcome::AlreadyEnded(task),
            }
        });
        outcome.unwrap_or(BringForwardOutcome::NotFound)
    }
}
