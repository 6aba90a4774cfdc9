//! A snapshot of everything that can be read from a store, to compare it with what it should hold.

use std::collections::BTreeMap;

use redrive_core::{Attempt, Task, TaskId, TenantId, Timestamp};

use super::samples::{attempts, counts, everything, list};
use crate::{ClaimedTask, LaneDue, PolicyVersion, Store, TaskDetail, TaskQuery};

/// The contents of a store for some tenants.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The contents by tenant.
    pub tenants: BTreeMap<TenantId, TenantSnapshot>,
    /// The classes of lanes that have pending tasks.
    pub lanes: Vec<LaneDue>,
    /// The earliest deadline of the pending tasks.
    pub next_deadline: Option<Timestamp>,
    /// The tasks in flight with their leases, by id.
    pub in_flight: Vec<ClaimedTask>,
    /// The dead letters whose alert is still to be raised, by id.
    pub unannounced: Vec<Task>,
    /// The newest id ever.
    pub newest: Option<TaskId>,
}

/// The contents of a store for one tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct TenantSnapshot {
    /// How many tasks are in each status.
    pub counts: [u64; 6],
    /// The tasks, newest first, each with its attempts.
    pub tasks: Vec<(TaskDetail, Vec<Attempt>)>,
    /// The policies with all of their versions.
    pub policies: Vec<PolicyVersion>,
}

/// Reads everything of these tenants. Made for the few thousand tasks of a test.
pub async fn snapshot(store: &dyn Store, tenants: impl IntoIterator<Item = TenantId>) -> Snapshot {
    let mut by_tenant = BTreeMap::new();
    for tenant in tenants {
        let held = of_tenant(store, tenant.clone()).await;
        by_tenant.insert(tenant, held);
    }
    let mut in_flight = store.upkeep().expired_leases(Timestamp::MAX, usize::MAX >> 1).await.unwrap();
    in_flight.sort_by_key(|claimed| claimed.task.id);
    let mut unannounced = store.upkeep().pending_alerts(Timestamp::MAX, usize::MAX >> 1).await.unwrap();
    unannounced.sort_by_key(|task| task.id);
    Snapshot {
        tenants: by_tenant,
        lanes: store.upkeep().pending_lanes(None, 1_000).await.unwrap(),
        next_deadline: store.upkeep().end_overdue(Timestamp::MAX, 0).await.unwrap().next_deadline,
        in_flight,
        unannounced,
        newest: store.upkeep().newest_task().await.unwrap(),
    }
}

async fn of_tenant(store: &dyn Store, tenant: TenantId) -> TenantSnapshot {
    let mut tasks = Vec::new();
    for found in list(store, TaskQuery { limit: 250, ..everything(tenant.clone()) }).await {
        let log = attempts(store, &found.task).await;
        tasks.push((found, log));
    }
    let mut policies = Vec::new();
    for current in store.policies().list(tenant.clone(), None, 1_000).await.unwrap() {
        policies.extend(store.policies().versions(tenant.clone(), current.id).await.unwrap());
    }
    TenantSnapshot { counts: counts(store, tenant).await, tasks, policies }
}

impl Snapshot {
    /// Panics with the first difference instead of with both whole snapshots.
    pub fn assert_is(&self, expected: &Snapshot, when: &str) {
        for (tenant, expected) in &expected.tenants {
            let held = &self.tenants[tenant];
            for (held, expected) in held.tasks.iter().zip(&expected.tasks) {
                assert_eq!(held, expected, "a task of {tenant}, {when}");
            }
            assert_eq!(held.tasks.len(), expected.tasks.len(), "the number of tasks of {tenant}, {when}");
            assert_eq!(held.counts, expected.counts, "the counts of {tenant}, {when}");
            assert_eq!(held.policies, expected.policies, "the policies of {tenant}, {when}");
        }
        assert_eq!(self.lanes, expected.lanes, "the lanes, {when}");
        assert_eq!(self.next_deadline, expected.next_deadline, "the next deadline, {when}");
        for (held, expected) in self.in_flight.iter().zip(&expected.in_flight) {
            assert_eq!(held, expected, "a lease, {when}");
        }
        for (held, expected) in self.unannounced.iter().zip(&expected.unannounced) {
            assert_eq!(held, expected, "an unannounced dead letter, {when}");
        }
        assert_eq!(self, expected, "{when}");
    }
}
