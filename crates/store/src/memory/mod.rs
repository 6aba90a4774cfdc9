//! The store that forgets: everything in this process's memory, nothing on a disk.
//!
//! For tests, for trying Redrive out, and as the baseline that a durable store is measured against. It keeps the whole
//! contract of [`Store`] but one word: its `Ok` survives nothing. One lock guards everything, every call completes at
//! once, and whatever order is visible outside comes from ordered maps, so that a simulation replays exactly.
//!
//! Superseded versions of a policy are kept until the policy is deleted: people write policies, so there are few.

mod announce;
mod blobs;
mod claim;
mod clean;
mod list;
mod overdue;
mod policies;
mod replay;
mod settle;
mod state;
mod submit;
mod take_back;

use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use redrive_core::request::Fingerprint;
use redrive_core::{
    Attempt, BodyHash, BodyRef, Class, IdempotencyKey, Lane, PolicyId, Task, TaskId, TenantId, Timestamp, policy,
};

use crate::{
    Announced, Blob, BroughtForward, Cancelled, ClaimRequest, Claimed, Claims, CleanFrom, Cleaned, Condemned, Counts,
    DeletePolicy, Error, Expected, LaneDue, NewTask, Overdue, PolicyVersion, PutPolicy, Replay, Settled, Settlement,
    Store, Submitted, TaskDetail, TaskPage, TaskQuery,
};
use state::State;

/// A store in memory; a new one is empty.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        MemoryStore::default()
    }

    fn open(&self) -> Result<MutexGuard<'_, State>, Error> {
        let state = self.state.lock().map_err(|_| Error::Unavailable("an earlier call panicked halfway".to_owned()))?;
        if state.closed { Err(Error::Closed) } else { Ok(state) }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn submit(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>, Error> {
        Ok(self.open()?.submit(tasks))
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, Error> {
        Ok(self.open()?.claim(&request))
    }

    async fn settle(&self, ends: Vec<Settlement>) -> Result<Vec<Settled>, Error> {
        Ok(self.open()?.settle(ends))
    }

    async fn cancel(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<Cancelled, Error> {
        Ok(self.open()?.cancel(&tenant, id, now))
    }

    async fn bring_forward(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<BroughtForward, Error> {
        Ok(self.open()?.bring_forward(&tenant, id, now))
    }

    async fn replay(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<Replay, Error> {
        Ok(self.open()?.replay(&tenant, id, now))
    }

    async fn unannounced(&self, ended_before: Timestamp, limit: usize) -> Result<Vec<Task>, Error> {
        Ok(self.open()?.unannounced(ended_before, limit))
    }

    async fn announced(&self, dead_letters: Vec<Announced>) -> Result<(), Error> {
        self.open()?.announced(&dead_letters);
        Ok(())
    }

    async fn expired(&self, now: Timestamp, limit: usize) -> Result<Vec<Claimed>, Error> {
        Ok(self.open()?.expired(now, limit))
    }

    async fn end_overdue(&self, now: Timestamp, limit: usize) -> Result<Overdue, Error> {
        Ok(self.open()?.end_overdue(now, limit))
    }

    async fn pending_lanes(&self, after: Option<(Lane, Class)>, limit: usize) -> Result<Vec<LaneDue>, Error> {
        Ok(self.open()?.pending_lanes(after, limit))
    }

    async fn task(&self, tenant: TenantId, id: TaskId) -> Result<Option<TaskDetail>, Error> {
        Ok(self.open()?.task(&tenant, id))
    }

    async fn tasks(&self, query: TaskQuery) -> Result<TaskPage, Error> {
        Ok(self.open()?.tasks(&query))
    }

    async fn counts(&self, tenant: TenantId) -> Result<Counts, Error> {
        Ok(self.open()?.counts(&tenant))
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

    async fn put_policy(
        &self,
        tenant: TenantId,
        id: PolicyId,
        spec: policy::Spec,
        expected: Expected,
        now: Timestamp,
    ) -> Result<PutPolicy, Error> {
        Ok(self.open()?.put_policy(tenant, id, spec, expected, now))
    }

    async fn policy(&self, tenant: TenantId, id: PolicyId) -> Result<Vec<PolicyVersion>, Error> {
        Ok(self.open()?.policy(&tenant, &id))
    }

    async fn policies(
        &self,
        tenant: TenantId,
        after: Option<PolicyId>,
        limit: usize,
    ) -> Result<Vec<PolicyVersion>, Error> {
        Ok(self.open()?.policies(&tenant, after.as_ref(), limit))
    }

    async fn delete_policy(&self, tenant: TenantId, id: PolicyId, expected: Expected) -> Result<DeletePolicy, Error> {
        Ok(self.open()?.delete_policy(&tenant, &id, expected))
    }

    async fn clean(&self, ended_before: Timestamp, from: CleanFrom, limit: usize) -> Result<Cleaned, Error> {
        Ok(self.open()?.clean(ended_before, from, limit))
    }

    async fn by_key(&self, tenant: TenantId, key: IdempotencyKey) -> Result<Option<(Task, Fingerprint)>, Error> {
        let state = self.open()?;
        let id = state.indexes.tenants.get(&tenant).and_then(|tenant| tenant.keys.get(&key));
        let entry = id.and_then(|id| state.tasks.get(id));
        Ok(entry.map(|entry| (entry.task.clone(), entry.fingerprint)))
    }

    async fn adopt_blob(&self, tenant: TenantId, fresh: BodyRef, now: Timestamp) -> Result<BodyRef, Error> {
        Ok(self.open()?.adopt_blob(tenant, fresh, now))
    }

    async fn blob(&self, tenant: TenantId, hash: BodyHash) -> Result<Option<BodyRef>, Error> {
        Ok(self.open()?.blob(&tenant, hash))
    }

    async fn condemn_blobs(
        &self,
        adopted_before: Timestamp,
        after: Option<Blob>,
        limit: usize,
    ) -> Result<Condemned, Error> {
        Ok(self.open()?.condemn_blobs(adopted_before, after, limit))
    }

    async fn forget_blobs(&self, blobs: Vec<Blob>) -> Result<(), Error> {
        self.open()?.forget_blobs(&blobs);
        Ok(())
    }

    async fn newest_task(&self) -> Result<Option<TaskId>, Error> {
        Ok(self.open()?.newest)
    }

    async fn check(&self) -> Result<(), Error> {
        self.open().map(drop)
    }

    fn is_exclusive(&self) -> bool {
        true
    }

    async fn close(&self) {
        // A store that a panic left unusable refuses every call already.
        if let Ok(mut state) = self.state.lock() {
            *state = State { closed: true, ..State::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::Status;

    use super::MemoryStore;
    use crate::conformance::interleave::{Actor, orders, run};
    use crate::conformance::samples::{acme, allow, at, keep_and_end, task};
    use crate::conformance::{Fresh, workload};
    use crate::{CleanFrom, Store};

    async fn fresh() -> Fresh {
        Fresh::new(MemoryStore::new())
    }

    crate::conformance!(fresh);

    #[tokio::test]
    async fn many_other_random_lives_end_as_the_model_says() {
        for seed in 2..20 {
            workload::run(&MemoryStore::new(), seed, 500).await;
        }
    }

    #[tokio::test]
    async fn no_order_of_two_collectors_two_uploads_and_a_submit_loses_a_body() {
        use Actor::{Collect, Submit, Upload};
        for actors in [[Upload, Submit, Collect, Collect], [Upload, Upload, Submit, Collect]] {
            for order in orders(&actors) {
                let store = MemoryStore::new();
                allow(&store, acme()).await;
                run(&store, &actors, &order, 1).await;
            }
        }
    }

    #[tokio::test]
    async fn nothing_is_left_of_what_was_cleaned_away() {
        let store = MemoryStore::new();
        keep_and_end(&store, task(1), Status::Succeeded, at(5)).await;
        keep_and_end(&store, task(2), Status::Failed, at(5)).await;
        store.clean(at(6), CleanFrom::Start, 10).await.unwrap();
        let state = store.open().unwrap();
        let acme = &state.indexes.tenants[&acme()];
        assert!(state.tasks.is_empty() && acme.ids.is_empty() && acme.keys.is_empty());
        assert!(state.indexes.due.is_empty() && state.indexes.deadlines.is_empty());
        assert!(state.indexes.leases.is_empty() && state.indexes.unannounced.is_empty());
    }

    #[tokio::test]
    async fn the_same_life_leads_to_the_same_store() {
        let (one, other) = (MemoryStore::new(), MemoryStore::new());
        assert_eq!(workload::run(&one, 7, 500).await, workload::run(&other, 7, 500).await);
    }
}
