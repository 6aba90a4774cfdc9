//! Replaying dead letters.

use redrive_core::Timestamp;

use super::state::State;
use crate::{ReplayOutcome, TaskKey};

impl State {
    pub(super) fn replay(&mut self, key: &TaskKey, now: Timestamp) -> ReplayOutcome {
        let Some(entry) = self.entry(&key.tenant, key.id) else { return ReplayOutcome::NotFound };
        if !entry.task.status.is_dead_letter() {
            return ReplayOutcome::NotDead(Box::new(entry.task.clone()));
        }
        if !self.has_policy(&key.tenant, &entry.task.policy) {
            return ReplayOutcome::PolicyGone(Box::new(entry.task.clone()));
        }
        let replayed = self.change(key.id, |entry| {
            entry.task.begin_next_run(now);
            entry.answer = None;
            entry.is_unannounced = false;
            ReplayOutcome::Done(Box::new(entry.task.clone()))
        });
        replayed.unwrap_or(ReplayOutcome::NotFound)
    }
}
