//! The lanes of tasks that this process has a claim on: a settlement names the task alone, the index needs its lane.
//!
//! Bounded by forgetting the oldest half at a time. A task that was forgotten is looked up in the store.

use std::collections::HashMap;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_core::{Lane, TaskId};

/// The most lanes that are remembered; the engine has far fewer attempts under way.
const LIMIT: usize = 100_000;

/// Lanes by task.
#[derive(Default)]
pub(crate) struct Underway {
    halves: Mutex<Halves>,
}

#[derive(Default)]
struct Halves {
    newer: HashMap<TaskId, Lane>,
    older: HashMap<TaskId, Lane>,
}

impl Underway {
    /// Remembers the lane of a task.
    pub(crate) fn remember(&self, id: TaskId, lane: Lane) {
        let mut halves = self.halves();
        if halves.newer.len() >= LIMIT / 2 {
            halves.older = mem::take(&mut halves.newer);
        }
        halves.newer.insert(id, lane);
    }

    /// The lane of a task, which is over now.
    pub(crate) fn forget(&self, id: TaskId) -> Option<Lane> {
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
    use redrive_core::{Dependency, TenantId};

    use super::*;

    #[test]
    fn the_latest_are_remembered_and_the_oldest_forgotten() {
        let underway = Underway::default();
        let lane = Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new("a").unwrap() };
        let id = |number| TaskId::from_parts(number, 0);
        (0..LIMIT as u64 + 1).for_each(|number| underway.remember(id(number), lane.clone()));
        assert_eq!(underway.forget(id(0)), None);
        assert_eq!(underway.forget(id(LIMIT as u64)), Some(lane.clone()));
        assert_eq!(underway.forget(id(LIMIT as u64 / 2)), Some(lane));
        assert_eq!(underway.forget(id(LIMIT as u64)), None);
    }
}
