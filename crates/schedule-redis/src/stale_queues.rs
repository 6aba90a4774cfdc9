//! Stale queues: classes of lanes of which the store may have more tasks than the index. Their next turn is claimed
//! from the store.
//!
//! The index lacks a task in four cases: its process died between the commit and the addition; a process took it from
//! the index and died before the claim; the answer to a take came too late; or it was written to the store by another
//! program (an application that enqueues by SQL). In all of these cases the store has a pending task of the class that
//! is due earlier than everything in the index. This is checked whenever the engine reads the lanes from the store,
//! which it does every few seconds, and whenever the store has news of a lane.
//!
//! A mark may be wrong: a task that is being taken from the index at this moment looks the same. Then one turn of
//! one class is claimed from the store, which costs little and is correct. There may also be many such tasks: then the
//! turn finds only tasks that the index does not have, and the class stays marked for another turn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_core::Timestamp;

use crate::schedule::Queue;

/// The most stale_queues. The next scan finds the others.
const LIMIT: usize = 10_000;

/// Classes of lanes, and from when on each must be claimed from the store.
#[derive(Default)]
pub(crate) struct StaleQueues {
    queues: Mutex<Queues>,
}

#[derive(Default)]
struct Queues {
    due: BTreeMap<Queue, Timestamp>,
    /// The same entries, ordered by time.
    in_order: BTreeSet<(Timestamp, Queue)>,
}

impl StaleQueues {
    /// Records that the store has a task of this class of a lane, with this due time, that the index may not have.
    pub(crate) fn mark(&self, queue: &Queue, due: Timestamp) {
        let mut queues = self.queues();
        if queues.due.get(queue).is_some_and(|known| *known <= due) {
            return;
        }
        queues.remove(queue);
        queues.due.insert(queue.clone(), due);
        queues.in_order.insert((due, queue.clone()));
        // The one that is due last has the most time to be found again.
        if queues.due.len() > LIMIT
            && let Some((_, last)) = queues.in_order.pop_last()
        {
            queues.due.remove(&last);
        }
    }

    pub(crate) fn clear(&self, queue: &Queue) {
        self.queues().remove(queue);
    }

    /// From when on the class must be claimed from the store, if it is marked as stale.
    pub(crate) fn due(&self, queue: &Queue) -> Option<Timestamp> {
        self.queues().due.get(queue).copied()
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    fn remove(&mut self, queue: &Queue) {
        if let Some(due) = self.due.remove(queue) {
            self.in_order.remove(&(due, queue.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::{Class, Dependency, Lane, TenantId};

    use super::*;

    fn queue(name: &str, class: Class) -> Queue {
        (Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new(name).unwrap() }, class)
    }

    fn lane(name: &str) -> Queue {
        queue(name, Class::First)
    }

    #[test]
    fn the_earliest_due_time_stays_marked_until_it_is_cleared() {
        let stale_queues = StaleQueues::default();
        for due in [20, 10, 30] {
            stale_queues.mark(&lane("a"), Timestamp::from_millis(due));
        }
        assert_eq!(stale_queues.due(&lane("a")), Some(Timestamp::from_millis(10)));
        assert_eq!(stale_queues.due(&lane("b")), None);
        assert_eq!(stale_queues.due(&queue("a", Class::Retry)), None);
        stale_queues.clear(&lane("a"));
        assert_eq!(stale_queues.due(&lane("a")), None);
    }

    #[test]
    fn of_too_many_those_that_are_due_last_are_left_out() {
        let stale_queues = StaleQueues::default();
        let number_of = |number: usize| Timestamp::from_millis(number as u64);
        (0..LIMIT + 10).rev().for_each(|number| stale_queues.mark(&lane(&number.to_string()), number_of(number)));
        let queues = stale_queues.queues();
        assert_eq!((queues.due.len(), queues.in_order.len()), (LIMIT, LIMIT));
        drop(queues);
        assert_eq!(stale_queues.due(&lane("0")), Some(number_of(0)));
        assert_eq!(stale_queues.due(&lane(&LIMIT.to_string())), None);
    }
}
