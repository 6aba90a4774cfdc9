//! A store that fails when the test orders it, and otherwise passes every call on to the store that it wraps.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use redrive_core::guards::Controls;
use redrive_core::idempotency::{Operation, Record, RecordKey, Reserved};
use redrive_core::policy::Spec;
use redrive_core::request::Fingerprint;
use redrive_core::task::PolicyRef;
use redrive_core::{
    Attempt, BodyHash, BodyRef, Class, IdempotencyKey, Lane, PolicyId, Task, TaskId, TenantId, Timestamp,
};
use redrive_store::memory::MemoryStore;
use redrive_store::*;
use tokio::sync::Notify;

use super::Peers;

pub struct FailingStore {
    inner: MemoryStore,
    failures: Mutex<BTreeMap<&'static str, usize>>,
    lost_answers: Mutex<BTreeMap<&'static str, usize>>,
    damages: Mutex<BTreeMap<&'static str, usize>>,
    panics: Mutex<BTreeMap<&'static str, usize>>,
    calls: Mutex<BTreeMap<&'static str, usize>>,
    is_shared: AtomicBool,
    peers: Option<Arc<Peers>>,
    held: Mutex<BTreeMap<&'static str, Arc<Hold>>>,
    takes: Mutex<BTreeMap<&'static str, Duration>>,
    under_way: Mutex<BTreeMap<&'static str, UnderWay>>,
}

/// Calls of one method.
#[derive(Default)]
struct UnderWay {
    now: usize,
    most: usize,
}

/// A call that has happened in the store, whose answer is held back.
#[derive(Default)]
pub struct Hold {
    reached: Notify,
    released: Notify,
}

impl Hold {
    /// Waits until the call has happened.
    pub async fn reached(&self) {
        self.reached.notified().await;
    }

    /// Releases the answer.
    pub fn release(&self) {
        self.released.notify_one();
    }
}

impl FailingStore {
    pub fn new(inner: MemoryStore) -> Self {
        FailingStore {
            inner,
            failures: Mutex::default(),
            lost_answers: Mutex::default(),
            damages: Mutex::default(),
            panics: Mutex::default(),
            calls: Mutex::default(),
            is_shared: AtomicBool::new(false),
            peers: None,
            held: Mutex::default(),
            takes: Mutex::default(),
            under_way: Mutex::default(),
        }
    }

    /// A store that several nodes share, with this clock.
    pub fn of_several(inner: MemoryStore, peers: Arc<Peers>) -> Self {
        FailingStore { is_shared: AtomicBool::new(true), peers: Some(peers), ..FailingStore::new(inner) }
    }

    /// From now on the store is shared with other processes.
    pub fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// From now on the store is exclusive to this process again.
    pub fn own(&self) {
        self.is_shared.store(false, Ordering::Relaxed);
    }

    /// The next `times` calls of `method` fail without any effect.
    pub fn fail(&self, method: &'static str, times: usize) {
        known(method);
        self.failures.lock().unwrap().insert(method, times);
    }

    /// The next `times` calls of `method` take effect and then fail, before any other failure: their answers are lost.
    pub fn lose_answers(&self, method: &'static str, times: usize) {
        known(method);
        self.lost_answers.lock().unwrap().insert(method, times);
    }

    /// The next `times` calls of `method` fail with damaged data.
    pub fn damage(&self, method: &'static str, times: usize) {
        known(method);
        self.damages.lock().unwrap().insert(method, times);
    }

    /// The next call of `method` panics.
    pub fn panic_in(&self, method: &'static str) {
        known(method);
        self.panics.lock().unwrap().insert(method, 1);
    }

    /// How often `method` was called, with any result.
    pub fn calls(&self, method: &'static str) -> usize {
        known(method);
        self.calls.lock().unwrap().get(method).copied().unwrap_or(0)
    }

    /// How many of the failures ordered for `method` are still to come.
    pub fn failures_left(&self, method: &'static str) -> usize {
        known(method);
        self.failures.lock().unwrap().get(method).copied().unwrap_or(0)
    }

    /// The next call of `method` takes effect, and its answer is held back until the hold is released.
    pub fn hold_answer(&self, method: &'static str) -> Arc<Hold> {
        known(method);
        let hold = Arc::<Hold>::default();
        self.held.lock().unwrap().insert(method, hold.clone());
        hold
    }

    /// From now on every call of `method` takes this long.
    pub fn slow_down(&self, method: &'static str, takes: Duration) {
        known(method);
        self.takes.lock().unwrap().insert(method, takes);
    }

    /// The most calls of `method` that were under way at once.
    pub fn most_at_once(&self, method: &'static str) -> usize {
        known(method);
        self.under_way.lock().unwrap().get(method).map_or(0, |calls| calls.most)
    }

    async fn take_time(&self, method: &'static str) {
        let takes = self.takes.lock().unwrap().get(method).copied();
        let Some(takes) = takes else { return };
        {
            let mut under_way = self.under_way.lock().unwrap();
            let calls = under_way.entry(method).or_default();
            calls.now += 1;
            calls.most = calls.most.max(calls.now);
        }
        tokio::time::sleep(takes).await;
        self.under_way.lock().unwrap().entry(method).or_default().now -= 1;
    }

    async fn hold_back(&self, method: &'static str) {
        let hold = self.held.lock().unwrap().remove(method);
        if let Some(hold) = hold {
            hold.reached.notify_one();
            hold.released.notified().await;
        }
    }

    fn pass(&self, method: &'static str) -> Result<(), Error> {
        assert!(!count_down(&self.panics, method), "{method} was told to panic");
        if count_down(&self.damages, method) {
            return Err(Error::Corrupt(format!("{method} read an invalid value")));
        }
        match count_down(&self.failures, method) {
            true => Err(Error::Unavailable(format!("{method} was told to fail"))),
            false => Ok(()),
        }
    }
}

/// Fails for a name that no method has: a test with it would prove nothing.
fn known(method: &str) {
    assert!(METHODS.contains(&method), "the store has no method {method:?}");
}

/// Whether a failure ordered for `method` was left; counts it down.
fn count_down(ordered: &Mutex<BTreeMap<&'static str, usize>>, method: &'static str) -> bool {
    let mut ordered = ordered.lock().unwrap();
    let left = ordered.get_mut(method).filter(|left| **left > 0);
    left.map(|left| *left -= 1).is_some()
}

#[async_trait]
impl Store for FailingStore {
    redrive_store::own_concepts!();

    fn guard_states(&self) -> Option<&dyn GuardStates> {
        self.is_exclusive().then_some(&self.inner as &dyn GuardStates)
    }

    fn is_exclusive(&self) -> bool {
        !self.is_shared.load(Ordering::Relaxed)
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        self.peers.as_ref().map(|peers| &**peers as &dyn SharedStore)
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

/// Every method fails if it was ordered to, and is passed on otherwise.
macro_rules! passed_on {
    ($($concept:ident { $($method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* })*) => {
        $(#[async_trait]
        impl $concept for FailingStore {
            $(async fn $method(&self, $($argument: $type),*) -> Result<$answer, Error> {
                *self.calls.lock().unwrap().entry(stringify!($method)).or_default() += 1;
                if count_down(&self.lost_answers, stringify!($method)) {
                    $concept::$method(&self.inner, $($argument),*).await?;
                    return Err(Error::Unavailable(format!("the answer of {} was lost", stringify!($method))));
                }
                self.pass(stringify!($method))?;
                self.take_time(stringify!($method)).await;
                let answer = $concept::$method(&self.inner, $($argument),*).await;
                self.hold_back(stringify!($method)).await;
                answer
            })*
        })*

        /// Every method that can be ordered to fail.
        const METHODS: &[&str] = &[$($(stringify!($method)),*),*];
    };
}

passed_on! {
    Tasks {
        submit(tasks: Vec<NewTask>) -> Vec<Submitted>;
        claim(request: ClaimRequest) -> Claims;
        settle(ends: Vec<Settlement>) -> Vec<Settled>;
        cancel(tasks: Vec<TaskKey>, now: Timestamp) -> Answers<CancelOutcome>;
        bring_forward(tasks: Vec<TaskKey>, now: Timestamp) -> Answers<BringForwardOutcome>;
        replay(tasks: Vec<TaskKey>, now: Timestamp) -> Answers<ReplayOutcome>;
        suppress(tasks: Vec<Suppression>, now: Timestamp) -> Answers<SuppressOutcome>;
    }
    Upkeep {
        pending_lanes(after: Option<(Lane, Class)>, limit: usize) -> Vec<LaneDue>;
        expired_leases(now: Timestamp, limit: usize) -> Vec<ClaimedTask>;
        end_overdue(now: Timestamp, limit: usize) -> Overdue;
        pending_alerts(ended_before: Timestamp, limit: usize) -> Vec<Task>;
        confirm_alerts(alerts: Vec<RaisedAlert>) -> ();
        clean(ended_before: Timestamp, from: CleanFrom, limit: usize) -> Cleaned;
        newest_task() -> Option<TaskId>;
    }
    Reads {
        task(tenant: TenantId, id: TaskId) -> Option<TaskDetail>;
        by_key(tenant: TenantId, key: IdempotencyKey) -> Option<(Task, Fingerprint)>;
        list(query: TaskQuery) -> TaskPage;
        counts(tenant: TenantId) -> Counts;
        backlogs(lanes: Vec<Lane>, now: Timestamp, most: u32) -> Vec<Backlog>;
        old_retries(lanes: Vec<Lane>, accepted_before: Timestamp, look_at: u32) -> Vec<u32>;
        attempts(tenant: TenantId, id: TaskId, after: u32, limit: usize) -> Option<Vec<Attempt>>;
    }
    Policies {
        put(tenant: TenantId, id: PolicyId, spec: Spec, expected: Expected, now: Timestamp) -> PutPolicy;
        versions(tenant: TenantId, id: PolicyId) -> Vec<PolicyVersion>;
        version(tenant: TenantId, policy: PolicyRef) -> Option<PolicyVersion>;
        list(tenant: TenantId, after: Option<PolicyId>, limit: usize) -> Vec<PolicyVersion>;
        delete(tenant: TenantId, id: PolicyId, expected: Expected) -> DeletePolicy;
    }
    Blobs {
        adopt(tenant: TenantId, fresh: BodyRef, now: Timestamp) -> BodyRef;
        find(tenant: TenantId, hash: BodyHash) -> Option<BodyRef>;
        condemn(adopted_before: Timestamp, after: Option<Blob>, limit: usize) -> Condemned;
        forget(blobs: Vec<Blob>) -> ();
    }
    Records {
        reserve(reservations: Vec<Reservation>, now: Timestamp) -> Answers<Reserved>;
        change(changes: Vec<RecordChange>, now: Timestamp) -> Answers<RecordChanged>;
        read(key: RecordKey, now: Timestamp) -> Option<Record>;
        list(query: RecordQuery) -> RecordPage;
        delete(key: RecordKey, seen: Option<SeenRecord>, now: Timestamp) -> DeletedRecord;
        counts(tenant: TenantId, after: Option<Operation>, limit: usize, most: u32) -> Vec<OperationCounts>;
        clean(now: Timestamp, limit: usize) -> usize;
    }
    LaneControls {
        replace(lane: Lane, expected: Controls, new: Controls) -> bool;
        list(after: Option<Lane>, limit: usize) -> Vec<(Lane, Controls)>;
    }
    Health {
        check() -> ();
    }
}
