//! The store that forgets, with what tests need to change about it: it can be shared, with a clock of its own, and it can
//! lose the body of a response.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use redrive_core::idempotency::{Operation, Record, RecordKey, Reserved};
use redrive_core::{TaskId, TenantId, Timestamp};
use redrive_engine::clock::Clock;
use redrive_store::memory::{MemorySharedGuards, MemoryStore};
use redrive_store::*;

use super::ManualClock;

pub(crate) struct TestStore {
    inner: MemoryStore,
    peers: Option<Peers>,
    /// How many of the next changes are refused because a body is gone.
    bodies_gone: AtomicUsize,
    /// How the answer to the next reservations is lost after they were stored.
    lost_answer: Mutex<Option<LostAnswer>>,
    /// How often a single record was read.
    record_reads: AtomicUsize,
    /// Whether records cannot be listed.
    refuses_lists: AtomicBool,
    /// The tenant whose tasks are not accepted.
    refused: Mutex<Option<TenantId>>,
    /// The number of rows that cannot be read.
    set_aside: AtomicU64,
}

/// How a store reports that it does not know whether a commit was made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LostAnswer {
    /// As one error of the call.
    Whole,
    /// As an error of each item.
    EachItem,
}

/// What makes a store a shared one.
struct Peers {
    clock: Arc<ManualClock>,
    ahead_ms: AtomicI64,
    guards: MemorySharedGuards,
}

impl TestStore {
    pub(crate) fn new(clock: &Arc<ManualClock>, is_shared: bool) -> Arc<Self> {
        let peers =
            || Peers { clock: clock.clone(), ahead_ms: AtomicI64::new(0), guards: MemorySharedGuards::default() };
        Arc::new(TestStore {
            inner: MemoryStore::new(),
            peers: is_shared.then(peers),
            bodies_gone: AtomicUsize::new(0),
            lost_answer: Mutex::default(),
            record_reads: AtomicUsize::new(0),
            refuses_lists: AtomicBool::new(false),
            refused: Mutex::default(),
            set_aside: AtomicU64::new(0),
        })
    }

    /// Whether lists of records, and with them of silences, fail from here on.
    pub(crate) fn refuse_lists(&self, refuses: bool) {
        self.refuses_lists.store(refuses, Ordering::Relaxed);
    }

    /// Refuses tasks of this tenant from here on.
    pub(crate) fn refuse_tasks(&self, tenant: Option<&str>) {
        *self.refused.lock().unwrap() = tenant.map(|tenant| TenantId::try_new(tenant).unwrap());
    }

    /// Says that this many rows cannot be read.
    pub(crate) fn set_aside(&self, rows: u64) {
        self.set_aside.store(rows, Ordering::Relaxed);
    }

    /// Stores the next reservations and loses the answer.
    pub(crate) fn lose_answer(&self, how: LostAnswer) {
        *self.lost_answer.lock().unwrap() = Some(how);
    }

    /// How often a single record was read.
    pub(crate) fn record_reads(&self) -> usize {
        self.record_reads.load(Ordering::Relaxed)
    }

    /// Sets the clock of a shared store this far ahead.
    pub(crate) fn set_ahead(&self, millis: i64) {
        self.peers.as_ref().unwrap().ahead_ms.store(millis, Ordering::Relaxed);
    }

    /// Refuses the next changes of records because a body is gone.
    pub(crate) fn lose_bodies(&self, times: usize) {
        self.bodies_gone.store(times, Ordering::Relaxed);
    }
}

#[async_trait]
impl Store for TestStore {
    fn tasks(&self) -> &dyn Tasks {
        self
    }

    fn upkeep(&self) -> &dyn Upkeep {
        &self.inner
    }

    fn reads(&self) -> &dyn Reads {
        &self.inner
    }

    fn policies(&self) -> &dyn Policies {
        &self.inner
    }

    fn blobs(&self) -> &dyn Blobs {
        &self.inner
    }

    fn records(&self) -> &dyn Records {
        self
    }

    fn controls(&self) -> &dyn LaneControls {
        &self.inner
    }

    fn guard_states(&self) -> Option<&dyn GuardStates> {
        self.inner.guard_states().filter(|_| self.peers.is_none())
    }

    fn health(&self) -> &dyn Health {
        self
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        self.peers.as_ref().map(|peers| peers as &dyn SharedStore)
    }

    fn is_exclusive(&self) -> bool {
        self.peers.is_none()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

#[async_trait]
impl Tasks for TestStore {
    async fn submit(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>, Error> {
        let refused = self.refused.lock().unwrap().clone();
        if tasks.iter().any(|new| Some(&new.task.lane.tenant) == refused.as_ref()) {
            return Err(Error::Unavailable("tasks of this tenant are refused".into()));
        }
        self.inner.submit(tasks).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, Error> {
        self.inner.claim(request).await
    }

    async fn settle(&self, ends: Vec<Settlement>) -> Result<Vec<Settled>, Error> {
        self.inner.settle(ends).await
    }

    async fn cancel(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<CancelOutcome>, Error> {
        self.inner.cancel(tasks, now).await
    }

    async fn bring_forward(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<BringForwardOutcome>, Error> {
        self.inner.bring_forward(tasks, now).await
    }

    async fn replay(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<ReplayOutcome>, Error> {
        self.inner.replay(tasks, now).await
    }

    async fn suppress(&self, tasks: Vec<Suppression>, now: Timestamp) -> Result<Answers<SuppressOutcome>, Error> {
        self.inner.suppress(tasks, now).await
    }
}

#[async_trait]
impl Health for TestStore {
    async fn check(&self) -> Result<(), Error> {
        self.inner.check().await
    }

    async fn set_aside(&self, _: usize) -> Result<SetAside, Error> {
        Ok(SetAside { count: self.set_aside.load(Ordering::Relaxed), rows: Vec::new() })
    }
}

#[async_trait]
impl Records for TestStore {
    async fn reserve(&self, reservations: Vec<Reservation>, now: Timestamp) -> Result<Answers<Reserved>, Error> {
        let lost = self.lost_answer.lock().unwrap().take();
        let answers = self.inner.reserve(reservations, now).await?;
        let error = || Error::Unavailable("the connection was lost".into());
        match lost {
            None => Ok(answers),
            Some(LostAnswer::Whole) => Err(error()),
            Some(LostAnswer::EachItem) => Ok(answers.iter().map(|_| Err(error())).collect()),
        }
    }

    async fn change(&self, changes: Vec<RecordChange>, now: Timestamp) -> Result<Answers<RecordChanged>, Error> {
        let is_lost = |left: usize| left.checked_sub(1);
        if self.bodies_gone.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_lost).is_ok() {
            return Ok(changes.iter().map(|_| Ok(RecordChanged::BodyGone)).collect());
        }
        self.inner.change(changes, now).await
    }

    async fn read(&self, key: RecordKey, now: Timestamp) -> Result<Option<Record>, Error> {
        self.record_reads.fetch_add(1, Ordering::Relaxed);
        self.inner.read(key, now).await
    }

    async fn list(&self, query: RecordQuery) -> Result<RecordPage, Error> {
        if self.refuses_lists.load(Ordering::Relaxed) {
            return Err(Error::Unavailable("lists are refused".into()));
        }
        Records::list(&self.inner, query).await
    }

    async fn delete(&self, key: RecordKey, seen: Option<SeenRecord>, now: Timestamp) -> Result<DeletedRecord, Error> {
        Records::delete(&self.inner, key, seen, now).await
    }

    async fn counts(
        &self,
        tenant: TenantId,
        after: Option<Operation>,
        limit: usize,
        most: u32,
    ) -> Result<Vec<OperationCounts>, Error> {
        Records::counts(&self.inner, tenant, after, limit, most).await
    }

    async fn clean(&self, now: Timestamp, limit: usize) -> Result<usize, Error> {
        Records::clean(&self.inner, now, limit).await
    }
}

#[async_trait]
impl SharedStore for Peers {
    async fn next_news(&self) -> Vec<News> {
        std::future::pending().await
    }

    async fn heartbeat(&self, _: Heartbeat, _: Timestamp) -> Result<(), Error> {
        Ok(())
    }

    async fn time(&self) -> Result<Timestamp, Error> {
        let ahead = self.ahead_ms.load(Ordering::Relaxed);
        Ok(Timestamp::from_millis(self.clock.now().as_millis().saturating_add_signed(ahead)))
    }

    async fn leave(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<Node>, Error> {
        Ok(Vec::new())
    }

    async fn claim_known(&self, _: ClaimKnownRequest) -> Result<Vec<ClaimedTask>, Error> {
        Ok(Vec::new())
    }

    async fn waiting(&self, _: Option<(TenantId, TaskId)>, _: usize) -> Result<Vec<PendingTask>, Error> {
        Ok(Vec::new())
    }

    async fn blob_storage_id(&self, mine: Option<BlobStorageId>) -> Result<Option<BlobStorageId>, Error> {
        Ok(mine)
    }

    fn guards(&self) -> &dyn SharedGuards {
        &self.guards
    }
}
