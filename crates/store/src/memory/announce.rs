//! Which dead letters nobody has been alerted to yet.

use redrive_core::{Task, Timestamp};

use super::state::State;
use crate::Announced;

impl State {
    pub(super) fn unannounced(&self, ended_before: Timestamp, limit: usize) -> Vec<Task> {
        let noted = self.indexes.unannounced.iter().take_while(|(ended, _)| *ended < ended_before).take(limit);
        noted.filter_map(|(_, id)| self.tasks.get(id)).map(|entry| entry.task.clone()).collect()
    }

    pub(super) fn announced(&mut self, dead_letters: &[Announced]) {
        for Announced { tenant, id, run } in dead_letters {
            if self.entry(tenant, *id).is_some_and(|entry| entry.task.run == *run) {
                self.change(*id, |entry| entry.is_unannounced = false);
            }
        }
    }
}
