//! Ending pending tasks because a retry budget is spent.

use redrive_core::Timestamp;

use super::state::State;
use crate::{SuppressOutcome, Suppression, rules};

impl State {
    pub(super) fn suppress(&mut self, suppression: &Suppression, now: Timestamp) -> SuppressOutcome {
        let Suppression { tenant, id, attempt_number } = suppression;
        if self.entry(tenant, *id).is_none() {
            return SuppressOutcome::NotFound;
        }
        let outcome = self.change(*id, |entry| match rules::suppress(&mut entry.task, *attempt_number, now) {
            true => {
                entry.is_unannounced = true;
                SuppressOutcome::Done(Box::new(entry.task.clone()))
            }
            false => SuppressOutcome::NotWaiting(Box::new(entry.task.clone())),
        });
        outcome.unwrap_or(SuppressOutcome::NotFound)
    }
}
