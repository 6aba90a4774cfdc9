//! Counting the pending tasks of a lane.

use redrive_core::{Class, Lane, TaskId, Timestamp};

use super::state::State;
use crate::Backlog;

impl State {
    pub(super) fn backlog(&self, lane: &Lane, now: Timestamp, most: usize) -> Backlog {
        let pending = || Class::ALL.into_iter().filter_map(|class| self.indexes.due.get(&(lane.clone(), class)));
        let due = pending().flat_map(|queue| queue.iter().take_while(|(due, _)| *due <= now));
        let waiting = pending().flat_map(|queue| queue.iter().rev().take_while(|(due, _)| *due > now));
        Backlog { due: due.take(most).count() as u32, waiting: waiting.take(most).count() as u32 }
    }

    /// How many of the lane's first `look_at` retries belong to tasks that were accepted before this moment.
    pub(super) fn old_retries(&self, lane: &Lane, accepted_before: Timestamp, look_at: usize) -> u32 {
        let first_new = TaskId::first_sequence(accepted_before);
        let retries = self.indexes.due.get(&(lane.clone(), Class::Retry)).into_iter().flatten();
        retries.take(look_at).filter(|(_, id)| id.sequence() < first_new).count() as u32
    }
}
