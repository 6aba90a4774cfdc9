//! Counting the pending tasks of a lane.

use redrive_core::{Class, Lane, Timestamp};

use super::state::State;
use crate::Backlog;

impl State {
    pub(super) fn backlog(&self, lane: &Lane, now: Timestamp, most: usize) -> Backlog {
        let pending = || Class::ALL.into_iter().filter_map(|class| self.indexes.due.get(&(lane.clone(), class)));
        let due = pending().flat_map(|queue| queue.iter().take_while(|(due, _)| *due <= now));
        let waiting = pending().flat_map(|queue| queue.iter().rev().take_while(|(due, _)| *due > now));
        Backlog { due: due.take(most).count() as u32, waiting: waiting.take(most).count() as u32 }
    }
}
