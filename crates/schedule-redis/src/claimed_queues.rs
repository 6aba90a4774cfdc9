//! The lanes of tasks that this process has claimed, and the class that each was claimed from: a settlement names only
//! the task, and the index needs both.
//!
//! Bounded: when it is full, the oldest half is dropped. A dropped task is looked up in the store.

use std::collections::HashMap;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_core::TaskId;

use crate::schedule::Queue;

/// The most lanes that are remembered; the engine has far fewer attempts under way.
const LIMIT: usize = 100_000;

/// Lanes and classes by task.
#[derive(Default)]
pub(crate) struct ClaimedQueues {
    halves: Mutex<Halves>,
}

#[derive(Default)]
struct Halves {
    newer: HashMap<TaskId, Queue>,
    older: HashMap<TaskId, Queue>,
}

impl ClaimedQueues {
    /// Remembers the lane of a task and the class that it was claimed from.
    pub(crate) fn remember(&self, id: TaskId, queue: Queue) {
        let mut halves = self.halves();
        if halves.newer.len() >= LIMIT / 2 {
            halves.older = mem::take(&mut halves.newer);
        }
        halves.newer.insert(id, queue);
    }

    /// Removes and returns the lane and the class of a task whose claim has ended.
    pub(crate) fn forget(&self, id: TaskId) -> Option<Queue> {
        let mut halves = self.halves();
        let (newer, older) = (halves.newer.remove(&id), halves.older.remove(&id));
        newer.or(older)
    }

    fn halves(&self) -> MutexGuard<'_, Halves> {
        self.halves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::{Class, Dependency, Lane, TenantId};

    use super::*;

    #[test]
    fn the_latest_are_remembered_and_the_oldest_forgotten() {
        let claimed_queues = ClaimedQueues::default();
        let lane = Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new("a").unwrap() };
        let lane = (lane, Class::Retry);
        let id = |number| TaskId::from_parts(number, 0);
        (0..LIMIT as u64 + 1).for_each(|number| claimed_queues.remember(id(number), lane.clone()));
        assert_eq!(claimed_queues.forget(id(0)), None);
        assert_eq!(claimed_queues.forget(id(LIMIT as u64)), Some(lane.clone()));
        assert_eq!(claimed_queues.forget(id(LIMIT as u64 / 2)), Some(lane));
        assert_eq!(claimed_queues.forget(id(LIMIT as u64)), None);
    }
}
