//! The dead letters whose alert has not been confirmed.

use redrive_core::{Task, Timestamp};

use super::state::State;
use crate::RaisedAlert;

impl State {
    pub(super) fn pending_alerts(&self, ended_before: Timestamp, limit: usize) -> Vec<Task> {
        let noted = self.indexes.unannounced.iter().take_while(|(ended, _)| *ended < ended_before).take(limit);
        noted.filter_map(|(_, id)| self.tasks.get(id)).map(|entry| entry.task.clone()).collect()
    }

    pub(super) fn confirm_alerts(&mut self, alerts: &[RaisedAlert]) {
        for RaisedAlert { tenant, id, run } in alerts {
            if self.entry(tenant, *id).is_some_and(|entry| entry.task.run == *run) {
                self.change(*id, |entry| entry.is_unannounced = false);
            }
        }
    }
}
