//! The memory store's data, and the indexes that follow every change of a task.

use std::collections::{BTreeMap, BTreeSet, HashMap, btree_map};
use std::sync::Arc;

use redrive_core::guards::{Controls, Snapshot};
use redrive_core::request::Fingerprint;
use redrive_core::{
    Answer, Attempt, Body, BodyRef, Class, IdempotencyKey, Lane, PolicyId, Request, Status, Task, TaskId, TenantId,
    Timestamp,
};

use super::blobs::Kept;
use super::policies::PolicyEntry;
use super::records::Rows;
use crate::{Blob, ClaimedTask, Lease, TaskDetail, Token};

/// All data of the store. Changed only under the store's lock, one whole call at a time.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The states of guards that are kept.
    pub(super) guard_states: BTreeMap<Lane, Snapshot>,
    /// What operators have set for lanes.
    pub(super) controls: BTreeMap<Lane, Controls>,
    pub(super) closed: bool,
    pub(super) newest: Option<TaskId>,
    /// Boxed, so that a full tree node splits by moving pointers.
    pub(super) tasks: BTreeMap<TaskId, Box<Entry>>,
    pub(super) indexes: Indexes,
    /// Objects that hold bodies, including condemned ones until they are forgotten.
    pub(super) blobs: BTreeMap<Blob, Kept>,
    pub(super) records: Rows,
}

/// All that belongs to one task.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) task: Task,
    pub(super) request: Arc<Request>,
    pub(super) fingerprint: Fingerprint,
    /// The lease of the last claim; valid only while the task is in flight.
    pub(super) lease: Lease,
    pub(super) attempts: Vec<Attempt>,
    pub(super) answer: Option<Answer>,
    /// Whether it is a dead letter whose alert has not been confirmed.
    pub(super) is_unannounced: bool,
}

/// Indexes to find tasks without a scan of all of them.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    /// Pending tasks by lane and class, earliest due first; a class without any is absent.
    pub(super) due: BTreeMap<(Lane, Class), BTreeSet<(Timestamp, TaskId)>>,
    /// Pending tasks by their deadline.
    pub(super) deadlines: BTreeSet<(Timestamp, TaskId)>,
    /// Tasks in flight, by the end of their lease.
    pub(super) leases: BTreeSet<(Timestamp, TaskId)>,
    /// Dead letters whose alert is still to be raised, by when they ended.
    pub(super) unannounced: BTreeSet<(Timestamp, TaskId)>,
    pub(super) tenants: BTreeMap<TenantId, Tenant>,
    /// How many bodies of tasks and records are in each blob; a blob with none is absent.
    pub(super) bodies: BTreeMap<Blob, usize>,
}

/// The data of one tenant.
#[derive(Debug, Default)]
pub(super) struct Tenant {
    pub(super) ids: BTreeSet<TaskId>,
    /// Used for lookups only, never iterated: its order is random.
    pub(super) keys: HashMap<IdempotencyKey, TaskId>,
    /// By status, in the order of [`Status::ALL`].
    pub(super) counts: [u64; Status::ALL.len()],
    pub(super) policies: BTreeMap<PolicyId, PolicyEntry>,
}

impl State {
    /// The task, if it is this tenant's.
    pub(super) fn entry(&self, tenant: &TenantId, id: TaskId) -> Option<&Entry> {
        self.tasks.get(&id).map(Box::as_ref).filter(|entry| entry.task.lane.tenant == *tenant)
    }

    /// Changes a task and moves it in the indexes to where it belongs afterwards.
    pub(super) fn change<R>(&mut self, id: TaskId, change: impl FnOnce(&mut Entry) -> R) -> Option<R> {
        let entry = self.tasks.get_mut(&id)?;
        self.indexes.remove(entry);
        let result = change(entry);
        self.indexes.add(entry);
        Some(result)
    }
}

impl Entry {
    pub(super) fn claimed(&self) -> ClaimedTask {
        ClaimedTask { task: self.task.clone(), request: Arc::clone(&self.request), lease: self.lease }
    }

    pub(super) fn detail(&self) -> TaskDetail {
        TaskDetail { task: self.task.clone(), request: Arc::clone(&self.request), answer: self.answer.clone() }
    }

    /// Counts the next attempt under a new lease, whose token is above all earlier ones.
    pub(super) fn claim(&mut self, since: Timestamp, until: Timestamp) -> Lease {
        self.task.status = Status::InFlight;
        self.task.attempt_number += 1;
        self.lease = Lease { token: Token(self.lease.token.0 + 1), since, until };
        self.lease
    }

    /// The blobs that the task refers to.
    fn blobs(&self) -> impl Iterator<Item = Blob> {
        let answer = self.answer.as_ref().map(|answer| &answer.body);
        let stored = [Some(&self.request.body), answer].into_iter().flatten().filter_map(Body::stored);
        stored.map(|body| Blob { tenant: self.task.lane.tenant.clone(), body: *body })
    }

    fn queue(&self) -> (Lane, Class) {
        (self.task.lane.clone(), self.task.class())
    }

    fn due(&self) -> (Timestamp, TaskId) {
        (self.task.next_attempt_at.unwrap_or_default(), self.task.id)
    }

    fn ended(&self) -> (Timestamp, TaskId) {
        (self.task.ended_at.unwrap_or_default(), self.task.id)
    }
}

impl Indexes {
    /// Adds a task to the indexes under its present state.
    pub(super) fn add(&mut self, entry: &Entry) {
        let task = &entry.task;
        match task.status {
            Status::Pending => {
                self.due.entry(entry.queue()).or_default().insert(entry.due());
                self.deadlines.insert((task.deadline_at, task.id));
            }
            Status::InFlight => {
                self.leases.insert((entry.lease.until, task.id));
            }
            _ => {}
        }
        if entry.is_unannounced {
            self.unannounced.insert(entry.ended());
        }
        for blob in entry.blobs() {
            *self.bodies.entry(blob).or_default() += 1;
        }
        if let Some(tenant) = self.tenants.get_mut(&task.lane.tenant) {
            tenant.counts[task.status as usize] += 1;
            if let Some(policy) = tenant.policies.get_mut(&task.policy.id).filter(|_| !task.status.is_ended()) {
                policy.pins += 1;
            }
        }
    }

    /// Removes a task from where [`add`](Indexes::add) put it; its state must be the same as then.
    pub(super) fn remove(&mut self, entry: &Entry) {
        let task = &entry.task;
        match task.status {
            Status::Pending => {
                if let btree_map::Entry::Occupied(mut due) = self.due.entry(entry.queue()) {
                    due.get_mut().remove(&entry.due());
                    if due.get().is_empty() {
                        due.remove();
                    }
                }
                self.deadlines.remove(&(task.deadline_at, task.id));
            }
            Status::InFlight => {
                self.leases.remove(&(entry.lease.until, task.id));
            }
            _ => {}
        }
        if entry.is_unannounced {
            self.unannounced.remove(&entry.ended());
        }
        for blob in entry.blobs() {
            self.release_body(&blob.tenant, Some(&blob.body));
        }
        if let Some(tenant) = self.tenants.get_mut(&task.lane.tenant) {
            tenant.counts[task.status as usize] -= 1;
            if let Some(policy) = tenant.policies.get_mut(&task.policy.id).filter(|_| !task.status.is_ended()) {
                policy.pins -= 1;
            }
        }
    }

    /// Takes back one reference to a blob.
    pub(super) fn release_body(&mut self, tenant: &TenantId, body: Option<&BodyRef>) {
        let Some(body) = body else { return };
        if let btree_map::Entry::Occupied(mut bodies) = self.bodies.entry(Blob { tenant: tenant.clone(), body: *body })
        {
            *bodies.get_mut() -= 1;
            if *bodies.get() == 0 {
                bodies.remove();
            }
        }
    }
}
