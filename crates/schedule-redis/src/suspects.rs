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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_core::{Lane, Timestamp};

/// The most lanes under suspicion. The next look finds the others.
const LIMIT: usize = 10_000;

/// Lanes, and from when on each has to be claimed from the store.
#[derive(Default)]
pub(crate) struct Suspects {
    lanes: Mutex<Lanes>,
}

#[derive(Default)]
struct Lanes {
    due: BTreeMap<Lane, Timestamp>,
    /// The same, the other way round.
    in_order: BTreeSet<(Timestamp, Lane)>,
}

impl Suspects {
    /// The store has a task of this lane, due then, that the index may not have.
    pub(crate) fn suspect(&self, lane: &Lane, due: Timestamp) {
        let mut lanes = self.lanes();
        if lanes.due.get(lane).is_some_and(|known| *known <= due) {
            return;
        }
        lanes.remove(lane);
        lanes.due.insert(lane.clone(), due);
        lanes.in_order.insert((due, lane.clone()));
        // The one that is due last has the most time to be found again.
        if lanes.due.len() > LIMIT
            && let Some((_, last)) = lanes.in_order.pop_last()
        {
            lanes.due.remove(&last);
        }
    }

    pub(crate) fn clear(&self, lane: &Lane) {
        self.lanes().remove(lane);
    }

    /// From when on the lane has to be claimed from the store, if it is a suspect.
    pub(crate) fn due(&self, lane: &Lane) -> Option<Timestamp> {
        self.lanes().due.get(lane).copied()
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lanes {
    fn remove(&mut self, lane: &Lane) {
        if let Some(due) = self.due.remove(lane) {
            self.in_order.remove(&(due, lane.clone()));
        }
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
    fn of_too_many_those_that_are_due_last_are_left_out() {
        let suspects = Suspects::default();
        let number_of = |number: usize| Timestamp::from_millis(number as u64);
        (0..LIMIT + 10).rev().for_each(|number| suspects.suspect(&lane(&number.to_string()), number_of(number)));
        let lanes = suspects.lanes();
        assert_eq!((lanes.due.len(), lanes.in_order.len()), (LIMIT, LIMIT));
        drop(lanes);
        assert_eq!(suspects.due(&lane("0")), Some(number_of(0)));
        assert_eq!(suspects.due(&lane(&LIMIT.to_string())), None);
    }
}
