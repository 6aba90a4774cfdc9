//! Lanes of which the store may have more than the index: their next turn is claimed from the store.
//!
//! The index cannot know of a task whose process died between the commit and the addition, that was taken from the index
//! by a process that died before it claimed it, whose taking was answered too late, or that was put into the store by
//! somebody else altogether (an application that enqueues by SQL). In all of these cases the store has a pending task of
//! the lane that is due earlier than everything that the index has of it. That is what is looked for, whenever the engine
//! reads the lanes from the store, which it does every few seconds, and whenever the store has news of a lane.
//!
//! A suspicion may be wrong: a task that was taken from the index this very moment looks the same. Then one turn of one
//! lane is claimed from the store, which costs little and is right all the same. It may also be one of many: then the
//! turn finds only tasks that the index does not have, and the lane stays a suspect for another turn.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_core::{Lane, Timestamp};

/// The most lanes under suspicion. The next look finds the others.
const LIMIT: usize = 10_000;

/// Lanes, and from when on each has to be claimed from the store.
#[derive(Default)]
pub(crate) struct Suspects {
    lanes: Mutex<BTreeMap<Lane, Timestamp>>,
}

impl Suspects {
    /// The store has a task of this lane, due then, that the index may not have.
    pub(crate) fn suspect(&self, lane: &Lane, due: Timestamp) {
        let mut lanes = self.lanes();
        if let Some(known) = lanes.get_mut(lane) {
            *known = due.min(*known);
        } else if lanes.len() < LIMIT {
            lanes.insert(lane.clone(), due);
        }
    }

    pub(crate) fn clear(&self, lane: &Lane) {
        self.lanes().remove(lane);
    }

    /// From when on the lane has to be claimed from the store, if it is a suspect.
    pub(crate) fn due(&self, lane: &Lane) -> Option<Timestamp> {
        self.lanes().get(lane).copied()
    }

    fn lanes(&self) -> MutexGuard<'_, BTreeMap<Lane, Timestamp>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::{Dependency, TenantId};

    use super::*;

    fn lane(name: &str) -> Lane {
        Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new(name).unwrap() }
    }

    #[test]
    fn the_earliest_suspicion_stands_until_it_is_cleared() {
        let suspects = Suspects::default();
        for due in [20, 10, 30] {
            suspects.suspect(&lane("a"), Timestamp::from_millis(due));
        }
        assert_eq!(suspects.due(&lane("a")), Some(Timestamp::from_millis(10)));
        assert_eq!(suspects.due(&lane("b")), None);
        suspects.clear(&lane("a"));
        assert_eq!(suspects.due(&lane("a")), None);
    }

    #[test]
    fn there_are_never_too_many() {
        let suspects = Suspects::default();
        (0..LIMIT + 10).for_each(|number| suspects.suspect(&lane(&number.to_string()), Timestamp::default()));
        assert_eq!(suspects.lanes().len(), LIMIT);
    }
}
