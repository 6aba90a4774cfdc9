//! Putting a dead letter back to work.

use redrive_core::planted::{self, Bug};
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
            let (before, key) = (entry.task.attempt_number, entry.task.idempotency_key.clone());
            let deadline_at = entry.task.deadline_at;
            entry.task.begin_next_run(now);
            if planted::is(Bug::ReplayKeepsDeadline) {
                entry.task.deadline_at = deadline_at;
            }
            if planted::is(Bug::ReplayWithoutLimit) {
                entry.task.max_attempts = entry.task.max_attempts.saturating_add(before);
            }
            if planted::is(Bug::NewKeyOnReplay) {
                entry.task.idempotency_key = redrive_core::id::make_key(u128::from(key.as_str().len() as u64));
            }
            entry.answer = None;
            entry.is_unannounced = false;
            Replay::Done(Box::new(entry.task.clone()))
        });
        replayed.unwrap_or(Replay::NotFound)
    }
}
