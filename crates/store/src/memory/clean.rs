//! Removing tasks that ended long ago.

use std::ops::Bound;

use redrive_core::{TaskId, Timestamp};

use super::state::State;
use crate::{CleanFrom, Cleaned};

impl State {
    pub(super) fn clean(&mut self, ended_before: Timestamp, from: CleanFrom, limit: usize) -> Cleaned {
        let from = match from {
            CleanFrom::Start => Bound::Unbounded,
            CleanFrom::After(id) => Bound::Excluded(id),
        };
        // A step that looks at nothing would repeat endlessly.
        let limit = limit.max(1);
        let mut rows = self.tasks.range((from, Bound::Unbounded));
        let (mut looked_at, mut old) = (None, Vec::new());
        for (&id, entry) in rows.by_ref().take(limit) {
            looked_at = Some(id);
            if entry.task.ended_at.is_some_and(|ended| ended < ended_before) {
                old.push(id);
            }
        }
        let next = looked_at.filter(|_| rows.next().is_some()).map(CleanFrom::After);
        let removed = old.len();
        old.into_iter().for_each(|id| self.forget(id));
        Cleaned { removed, next }
    }

    fn forget(&mut self, id: TaskId) {
        let Some(entry) = self.tasks.remove(&id) else { return };
        self.indexes.remove(&entry);
        if let Some(tenant) = self.indexes.tenants.get_mut(&entry.task.lane.tenant) {
            tenant.ids.remove(&id);
            tenant.keys.remove(&entry.task.idempotency_key);
        }
    }
}
