//! Ending pending tasks whose deadline has passed.

use redrive_core::{Reason, Timestamp};

use super::state::State;
use crate::{Overdue, rules};

impl State {
    pub(super) fn end_overdue(&mut self, now: Timestamp, limit: usize) -> Overdue {
        let passed = self.indexes.deadlines.iter().take_while(|(deadline, _)| *deadline <= now).take(limit);
        let ids: Vec<_> = passed.map(|(_, id)| *id).collect();
        let end = |id| {
            self.change(id, |entry| {
                rules::exhaust(&mut entry.task, Reason::Deadline, now);
                entry.is_unannounced = true;
                entry.task.clone()
            })
        };
        let ended = ids.into_iter().filter_map(end).collect();
        Overdue { ended, next_deadline: self.indexes.deadlines.first().map(|(deadline, _)| *deadline) }
    }
}
