//! Ending pending tasks whose deadline has passed.

use redrive_core::{Reason, Status, Timestamp};

use super::state::State;
use crate::Overdue;

impl State {
    pub(super) fn end_overdue(&mut self, now: Timestamp, limit: usize) -> Overdue {
        let passed = self.indexes.deadlines.iter().take_while(|(deadline, _)| *deadline <= now).take(limit);
        let ids: Vec<_> = passed.map(|(_, id)| *id).collect();
        let end = |id| {
            self.change(id, |entry| {
                entry.task.status = Status::Exhausted;
                entry.task.reason = Some(Reason::Deadline);
                entry.task.next_attempt_at = None;
                entry.task.ended_at = Some(now);
                entry.is_unannounced = true;
                entry.task.clone()
            })
        };
        let ended = ids.into_iter().filter_map(end).collect();
        Overdue { ended, next_deadline: self.indexes.deadlines.first().map(|(deadline, _)| *deadline) }
    }
}
