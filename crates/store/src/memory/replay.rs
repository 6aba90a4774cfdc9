//! Putting a dead letter back to work.

use redrive_core::{TaskId, TenantId, Timestamp};

use super::state::State;
use crate::Replay;

impl State {
    pub(super) fn replay(&mut self, tenant: &TenantId, id: TaskId, now: Timestamp) -> Replay {
        let Some(entry) = self.entry(tenant, id) else { return Replay::NotFound };
        if !entry.task.status.is_dead_letter() {
            return Replay::NotDead(Box::new(entry.task.clone()));
        }
        if !self.has_policy(tenant, &entry.task.policy) {
            return Replay::PolicyGone(Box::new(entry.task.clone()));
        }
        let replayed = self.change(id, |entry| {
            entry.task.begin_next_run(now);
            entry.answer = None;
            entry.is_unannounced = false;
            Replay::Done(Box::new(entry.task.clone()))
        });
        replayed.unwrap_or(Replay::NotFound)
    }
}
