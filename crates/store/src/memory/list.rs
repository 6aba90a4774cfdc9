//! Reading tasks: one, a page, counts, attempts.

use std::ops::Bound;

use redrive_core::{Attempt, Status, TaskId, TenantId};

use super::state::{Entry, State};
use crate::{Counts, TaskDetail, TaskPage, TaskQuery};

/// The most tasks that one page looks at before it returns where to continue: bounds how long the lock is held.
const ROWS_PER_PAGE: usize = 10_000;

impl State {
    pub(super) fn task(&self, tenant: &TenantId, id: TaskId) -> Option<TaskDetail> {
        self.entry(tenant, id).map(Entry::detail)
    }

    pub(super) fn list(&self, query: &TaskQuery) -> TaskPage {
        let mut page = TaskPage::default();
        let Some(tenant) = self.indexes.tenants.get(&query.tenant) else { return page };
        let mut ids = tenant.ids.range(range(query)).rev();
        let mut last = None;
        for _ in 0..ROWS_PER_PAGE {
            if page.tasks.len() >= query.limit {
                break;
            }
            let Some(&id) = ids.next() else { break };
            last = Some(id);
            page.tasks.extend(self.tasks.get(&id).filter(|entry| matches(query, entry)).map(|entry| entry.detail()));
        }
        page.next = last.filter(|_| ids.next().is_some());
        page
    }

    pub(super) fn counts(&self, tenant: &TenantId) -> Counts {
        let Some(tenant) = self.indexes.tenants.get(tenant) else { return Counts::new() };
        Status::ALL.into_iter().zip(tenant.counts).filter(|(_, count)| *count > 0).collect()
    }

    pub(super) fn attempts(&self, tenant: &TenantId, id: TaskId, after: u32, limit: usize) -> Option<Vec<Attempt>> {
        let attempts = &self.entry(tenant, id)?.attempts;
        Some(attempts.iter().filter(|attempt| attempt.number > after).take(limit).cloned().collect())
    }
}

/// The ids that the page may have; an empty range if the page before has ended below the prefix.
fn range(query: &TaskQuery) -> (Bound<TaskId>, Bound<TaskId>) {
    let below = query.below.map_or(Bound::Unbounded, Bound::Excluded);
    let Some(prefix) = query.id_prefix else { return (Bound::Unbounded, below) };
    let first = Bound::Included(prefix.first());
    match query.below {
        Some(below) if below <= prefix.first() => (first, Bound::Excluded(prefix.first())),
        Some(below) if below <= prefix.last() => (first, Bound::Excluded(below)),
        _ => (first, Bound::Included(prefix.last())),
    }
}

fn matches(query: &TaskQuery, entry: &Entry) -> bool {
    let task = &entry.task;
    (query.statuses.is_empty() || query.statuses.contains(&task.status))
        && query.dependency.as_ref().is_none_or(|dependency| *dependency == task.lane.dependency)
        && query.policy.as_ref().is_none_or(|policy| *policy == task.policy.id)
        && query.created_from.is_none_or(|from| task.created_at >= from)
        && query.created_before.is_none_or(|before| task.created_at < before)
        && query.labels.iter().all(|(name, value)| entry.request.labels.get(name) == Some(value))
}
