//! The contract's calls, each of which holds the lock.

use async_trait::async_trait;
use redrive_core::idempotency::{Operation, Record, RecordKey, Reserved};
use redrive_core::request::Fingerprint;
use redrive_core::{
    Attempt, BodyHash, BodyRef, Class, IdempotencyKey, Lane, PolicyId, Task, TaskId, TenantId, Timestamp, policy,
};

use super::MemoryStore;
use super::state::State;
use crate::*;

#[async_trait]
impl Store for MemoryStore {
    crate::own_concepts!();

    fn guard_states(&self) -> Option<&dyn GuardStates> {
        Some(self)
    }

    fn is_exclusive(&self) -> bool {
        true
    }

    async fn close(&self) {
        // A store whose lock was poisoned by a panic refuses every call already.
        if let Ok(mut state) = self.state.lock() {
            *state = State { closed: true, ..State::default() };
        }
    }
}

#[async_trait]
impl Tasks for MemoryStore {
    async fn submit(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>, Error> {
        Ok(self.open()?.submit(tasks))
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, Error> {
        Ok(self.open()?.claim(&request))
    }

    async fn settle(&self, ends: Vec<Settlement>) -> Result<Vec<Settled>, Error> {
        Ok(self.open()?.settle(ends))
    }

    async fn cancel(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<CancelOutcome>, Error> {
        let mut state = self.open()?;
        Ok(tasks.iter().map(|task| Ok(state.cancel(task, now))).collect())
    }

    async fn bring_forward(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<BringForwardOutcome>, Error> {
        let mut state = self.open()?;
        Ok(tasks.iter().map(|task| Ok(state.bring_forward(task, now))).collect())
    }

    async fn replay(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<ReplayOutcome>, Error> {
        let mut state = self.open()?;
        Ok(tasks.iter().map(|task| Ok(state.replay(task, now))).collect())
    }

    async fn suppress(&self, tasks: Vec<Suppression>, now: Timestamp) -> Result<Answers<SuppressOutcome>, Error> {
        let mut state = self.open()?;
        Ok(tasks.iter().map(|task| Ok(state.suppress(task, now))).collect())
    }
}

#[async_trait]
impl Upkeep for MemoryStore {
    async fn pending_lanes(&self, after: Option<(Lane, Class)>, limit: usize) -> Result<Vec<LaneDue>, Error> {
        Ok(self.open()?.pending_lanes(after, limit))
    }

    async fn expired_leases(&self, now: Timestamp, limit: usize) -> Result<Vec<ClaimedTask>, Error> {
        Ok(self.open()?.expired_leases(now, limit))
    }

    async fn end_overdue(&self, now: Timestamp, limit: usize) -> Result<Overdue, Error> {
        Ok(self.open()?.end_overdue(now, limit))
    }

    async fn pending_alerts(&self, ended_before: Timestamp, limit: usize) -> Result<Vec<Task>, Error> {
        Ok(self.open()?.pending_alerts(ended_before, limit))
    }

    async fn confirm_alerts(&self, alerts: Vec<RaisedAlert>) -> Result<(), Error> {
        self.open()?.confirm_alerts(&alerts);
        Ok(())
    }

    async fn clean(&self, ended_before: Timestamp, from: CleanFrom, limit: usize) -> Result<Cleaned, Error> {
        Ok(self.open()?.clean(ended_before, from, limit))
    }

    async fn newest_task(&self) -> Result<Option<TaskId>, Error> {
        Ok(self.open()?.newest)
    }
}

#[async_trait]
impl Records for MemoryStore {
    async fn reserve(&self, reservations: Vec<Reservation>, now: Timestamp) -> Result<Answers<Reserved>, Error> {
        let (mut state, mut bodies) = (self.open()?, BodyAllowance::default());
        let reserve = |reservation| Ok(bodies.limit(state.reserve_record(reservation, now)));
        Ok(reservations.iter().map(reserve).collect())
    }

    async fn change(&self, changes: Vec<RecordChange>, now: Timestamp) -> Result<Answers<RecordChanged>, Error> {
        let mut state = self.open()?;
        Ok(changes.iter().map(|change| Ok(state.change_record(change, now))).collect())
    }

    async fn read(&self, key: RecordKey, now: Timestamp) -> Result<Option<Record>, Error> {
        Ok(self.open()?.record(&key, now))
    }

    async fn list(&self, query: RecordQuery) -> Result<RecordPage, Error> {
        Ok(self.open()?.list_records(&query))
    }

    async fn delete(&self, key: RecordKey, seen: Option<SeenRecord>, now: Timestamp) -> Result<DeletedRecord, Error> {
        Ok(self.open()?.delete_record(&key, seen, now))
    }

    async fn counts(
        &self,
        tenant: TenantId,
        after: Option<Operation>,
        limit: usize,
        most: u32,
    ) -> Result<Vec<OperationCounts>, Error> {
        Ok(self.open()?.count_records(&tenant, after.as_ref(), limit, most))
    }

    async fn clean(&self, now: Timestamp, limit: usize) -> Result<usize, Error> {
        Ok(self.open()?.clean_records(now, limit))
    }
}

#[async_trait]
impl Reads for MemoryStore {
    async fn task(&self, tenant: TenantId, id: TaskId) -> Result<Option<TaskDetail>, Error> {
        Ok(self.open()?.task(&tenant, id))
    }

    async fn by_key(&self, tenant: TenantId, key: IdempotencyKey) -> Result<Option<(Task, Fingerprint)>, Error> {
        let state = self.open()?;
        let id = state.indexes.tenants.get(&tenant).and_then(|tenant| tenant.keys.get(&key));
        let entry = id.and_then(|id| state.tasks.get(id));
        Ok(entry.map(|entry| (entry.task.clone(), entry.fingerprint)))
    }

    async fn list(&self, query: TaskQuery) -> Result<TaskPage, Error> {
        Ok(self.open()?.list(&query))
    }

    async fn counts(&self, tenant: TenantId) -> Result<Counts, Error> {
        Ok(self.open()?.counts(&tenant))
    }

    async fn backlogs(&self, lanes: Vec<Lane>, now: Timestamp, most: u32) -> Result<Vec<Backlog>, Error> {
        let state = self.open()?;
        Ok(lanes.iter().map(|lane| state.backlog(lane, now, most as usize)).collect())
    }

    async fn old_retries(&self, lanes: Vec<Lane>, accepted_before: Timestamp, look_at: u32) -> Result<Vec<u32>, Error> {
        let state = self.open()?;
        Ok(lanes.iter().map(|lane| state.old_retries(lane, accepted_before, look_at as usize)).collect())
    }

    async fn attempts(
        &self,
        tenant: TenantId,
        id: TaskId,
        after: u32,
        limit: usize,
    ) -> Result<Option<Vec<Attempt>>, Error> {
        Ok(self.open()?.attempts(&tenant, id, after, limit))
    }
}

#[async_trait]
impl Policies for MemoryStore {
    async fn put(
        &self,
        tenant: TenantId,
        id: PolicyId,
        spec: policy::Spec,
        expected: Expected,
        now: Timestamp,
    ) -> Result<PutPolicy, Error> {
        Ok(self.open()?.put_policy(tenant, id, spec, expected, now))
    }

    async fn versions(&self, tenant: TenantId, id: PolicyId) -> Result<Vec<PolicyVersion>, Error> {
        Ok(self.open()?.policy_versions(&tenant, &id))
    }

    async fn list(&self, tenant: TenantId, after: Option<PolicyId>, limit: usize) -> Result<Vec<PolicyVersion>, Error> {
        Ok(self.open()?.list_policies(&tenant, after.as_ref(), limit))
    }

    async fn delete(&self, tenant: TenantId, id: PolicyId, expected: Expected) -> Result<DeletePolicy, Error> {
        Ok(self.open()?.delete_policy(&tenant, &id, expected))
    }
}

#[async_trait]
impl Blobs for MemoryStore {
    async fn adopt(&self, tenant: TenantId, fresh: BodyRef, now: Timestamp) -> Result<BodyRef, Error> {
        Ok(self.open()?.adopt_blob(tenant, fresh, now))
    }

    async fn find(&self, tenant: TenantId, hash: BodyHash) -> Result<Option<BodyRef>, Error> {
        Ok(self.open()?.find_blob(&tenant, hash))
    }

    async fn condemn(&self, adopted_before: Timestamp, after: Option<Blob>, limit: usize) -> Result<Condemned, Error> {
        Ok(self.open()?.condemn_blobs(adopted_before, after, limit))
    }

    async fn forget(&self, blobs: Vec<Blob>) -> Result<(), Error> {
        self.open()?.forget_blobs(&blobs);
        Ok(())
    }
}

#[async_trait]
impl Health for MemoryStore {
    async fn check(&self) -> Result<(), Error> {
        self.open().map(drop)
    }
}
