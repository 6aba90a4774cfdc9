//! Generates task ids that always increase, whatever the clock shows.

use std::sync::{Mutex, PoisonError};

use redrive_core::{TaskId, Timestamp};

/// The source of task ids.
#[derive(Debug)]
pub(crate) struct TaskIds {
    last_sequence: Mutex<u64>,
}

impl TaskIds {
    /// Starts above `newest`, the newest id in the store.
    pub(crate) fn above(newest: Option<TaskId>) -> Self {
        TaskIds { last_sequence: Mutex::new(newest.map_or(0, TaskId::sequence)) }
    }

    /// The next id: from the millisecond `now`, or just above the last one if the clock has not advanced.
    pub(crate) fn next(&self, now: Timestamp, random: u64) -> TaskId {
        let mut last = self.last_sequence.lock().unwrap_or_else(PoisonError::into_inner);
        *last = TaskId::first_sequence(now).max(*last + 1);
        TaskId::from_parts(*last, random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_even_when_the_clock_goes_back() {
        let at = Timestamp::from_millis;
        let ids = TaskIds::above(None);
        let drawn = [at(1_000), at(1_000), at(999), at(1_001)].map(|now| ids.next(now, 7));
        assert!(drawn.is_sorted_by(|a, b| a < b), "{drawn:?}");
    }

    #[test]
    fn ids_start_above_what_the_store_knows() {
        let newest = TaskId::from_parts(TaskId::first_sequence(Timestamp::from_millis(5_000)), 0);
        let next = TaskIds::above(Some(newest)).next(Timestamp::from_millis(10), 0);
        assert_eq!(next.sequence(), newest.sequence() + 1);
    }
}
