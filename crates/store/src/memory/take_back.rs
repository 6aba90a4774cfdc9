//! What a person may do to a single task: take it back, or have it tried now.

use redrive_core::{Reason, Status, TaskId, TenantId, Timestamp};

use super::state::{Entry, State};
use crate::{BroughtForward, Cancelled};

impl State {
    pub(super) fn cancel(&mut self, tenant: &TenantId, id: TaskId, now: Timestamp) -> Cancelled {
        let Some(entry) = self.entry(tenant, id) else { return Cancelled::NotFound };
        if entry.task.status.is_ended() {
            return Cancelled::AlreadyEnded(Box::new(entry.task.clone()));
        }
        let cancelled = self.change(id, |entry| {
            entry.cancel(now);
            Cancelled::Done(Box::new(entry.task.clone()))
        });
        cancelled.unwrap_or(Cancelled::NotFound)
    }

    pub(super) fn bring_forward(&mut self, tenant: &TenantId, id: TaskId, now: Timestamp) -> BroughtForward {
        let Some(entry) = self.entry(tenant, id) else { return BroughtForward::NotFound };
        match entry.task.status {
            Status::InFlight => BroughtForward::InFlight(Box::new(entry.task.clone())),
            Status::Pending => {
                let brought = self.change(id, |entry| {
                    entry.task.next_attempt_at = entry.task.next_attempt_at.map(|at| at.min(now));
                    BroughtForward::Done(Box::new(entry.task.clone()))
                });
                brought.unwrap_or(BroughtForward::NotFound)
            }
            _ => BroughtForward::AlreadyEnded(Box::new(entry.task.clone())),
        }
    }
}

impl Entry {
    fn cancel(&mut self, now: Timestamp) {
        if self.task.status == Status::InFlight {
            // The attempt under way may still succeed: its settlement decides.
            self.task.cancel_requested = true;
            return;
        }
        self.task.status = Status::Cancelled;
        self.task.reason = Some(Reason::Cancelled);
        self.task.ended_at = Some(now);
        self.task.next_attempt_at = None;
    }
}
