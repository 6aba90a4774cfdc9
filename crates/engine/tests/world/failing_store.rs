//! A store that fails when the test says so, and otherwise is the one it wraps.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use redrive_core::policy::Spec;
use redrive_core::request::Fingerprint;
use redrive_core::task::PolicyRef;
use redrive_core::{
    Attempt, BodyHash, BodyRef, Class, IdempotencyKey, Lane, PolicyId, Task, TaskId, TenantId, Timestamp,
};
use redrive_store::memory::MemoryStore;
use redrive_store::*;
use tokio::sync::Notify;

use super::Neighbours;

pub struct FailingStore {
    inner: MemoryStore,
    failures: Mutex<BTreeMap<&'static str, usize>>,
    lost_answers: Mutex<BTreeMap<&'static str, usize>>,
    damages: Mutex<BTreeMap<&'static str, usize>>,
    panics: Mutex<BTreeMap<&'static str, usize>>,
    calls: Mutex<BTreeMap<&'static str, usize>>,
    is_shared: AtomicBool,
    neighbours: Option<Arc<Neighbours>>,
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
    /// Ends when the call has happened.
    pub async fn reached(&self) {
        self.reached.notified().await;
    }

    /// Lets the answer go.
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
            neighbours: None,
            held: Mutex::default(),
            takes: Mutex::default(),
            under_way: Mutex::default(),
        }
    }

    /// A store that several nodes use, with this clock.
    pub fn of_several(inner: MemoryStore, neighbours: Arc<Neighbours>) -> Self {
        FailingStore { is_shared: AtomicBool::new(true), neighbours: Some(neighbours), ..FailingStore::new(inner) }
    }

    /// From now on other processes may write here too.
    pub fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// From now on this process is alone here again.
    pub fn own(&self) {
        self.is_shared.store(false, Ordering::Relaxed);
    }

    /// The next `times` calls of `method` fail, and nothing of them happens.
    pub fn fail(&self, method: &'static str, times: usize) {
        self.failures.lock().unwrap().insert(method, times);
    }

    /// The next `times` calls of `method` happen and then fail, before any other failure: their answers are lost.
    pub fn lose_answers(&self, method: &'static str, times: usize) {
        self.lost_answers.lock().unwrap().insert(method, times);
    }

    /// The next `times` calls of `method` meet what cannot be understood.
    pub fn damage(&self, method: &'static str, times: usize) {
        self.damages.lock().unwrap().insert(method, times);
    }

    /// The next call of `method` panics.
    pub fn panic_in(&self, method: &'static str) {
        self.panics.lock().unwrap().insert(method, 1);
    }

    /// How often `method` was called, whatever came of it.
    pub fn calls(&self, method: &'static str) -> usize {
        self.calls.lock().unwrap().get(method).copied().unwrap_or(0)
    }

    /// How many of the failures ordered for `method` are still to come.
    pub fn failures_left(&self, method: &'static str) -> usize {
        self.failures.lock().unwrap().get(method).copied().unwrap_or(0)
    }

    /// The next call of `method` happens, and its answer is held back until the hold is released.
    pub fn hold_answer(&self, method: &'static str) -> Arc<Hold> {
        let hold = Arc::<Hold>::default();
        self.held.lock().unwrap().insert(method, hold.clone());
        hold
    }

    /// From now on every call of `method` takes this long.
    pub fn slow_down(&self, method: &'static str, takes: Duration) {
        self.takes.lock().unwrap().insert(method, takes);
    }

    /// The most calls of `method` that were under way at once.
    pub fn most_at_once(&self, method: &'static str) -> usize {
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
            return Err(Error::Corrupt(format!("what {method} found makes no sense")));
        }
        match count_down(&self.failures, method) {
            true => Err(Error::Unavailable(format!("{method} was told to fail"))),
            false => Ok(()),
        }
    }
}

/// Whether one was left of what was ordered for `method`; there is one less now.
fn count_down(ordered: &Mutex<BTreeMap<&'static str, usize>>, method: &'static str) -> bool {
    let mut ordered = ordered.lock().unwrap();
    let left = ordered.get_mut(method).filter(|left| **left > 0);
    left.map(|left| *left -= 1).is_some()
}

/// Every method: fail if told to, else pass it on.
macro_rules! passed_on {
    ($($method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Store for FailingStore {
            $(async fn $method(&self, $($argument: $type),*) -> Result<$answer, Error> {
                *self.calls.lock().unwrap().entry(stringify!($method)).or_default() += 1;
                if count_down(&self.lost_answers, stringify!($method)) {
                    self.inner.$method($($argument),*).await?;
                    return Err(Error::Unavailable(format!("the answer of {} was lost", stringify!($method))));
                }
                self.pass(stringify!($method))?;
                self.take_time(stringify!($method)).await;
                let answer = self.inner.$method($($argument),*).await;
                self.hold_back(stringify!($method)).await;
                answer
            })*

            fn is_exclusive(&self) -> bool {
                !self.is_shared.load(Ordering::Relaxed)
            }

            fn shared(&self) -> Option<&dyn Shared> {
                self.neighbours.as_ref().map(|neighbours| &**neighbours as &dyn Shared)
            }

            async fn close(&self) {
                self.inner.close().await;
            }
        }
    };
}

passed_on! {
    submit(tasks: Vec<NewTask>) -> Vec<Submitted>;
    claim(request: ClaimRequest) -> Claims;
    policy_version(tenant: TenantId, policy: PolicyRef) -> Option<PolicyVersion>;
    settle(ends: Vec<Settlement>) -> Vec<Settled>;
    cancel(tenant: TenantId, id: TaskId, now: Timestamp) -> Cancelled;
    bring_forward(tenant: TenantId, id: TaskId, now: Timestamp) -> BroughtForward;
    replay(tenant: TenantId, id: TaskId, now: Timestamp) -> Replay;
    unannounced(ended_before: Timestamp, limit: usize) -> Vec<Task>;
    announced(dead_letters: Vec<Announced>) -> ();
    expired(now: Timestamp, limit: usize) -> Vec<Claimed>;
    end_overdue(now: Timestamp, limit: usize) -> Overdue;
    pending_lanes(after: Option<(Lane, Class)>, limit: usize) -> Vec<LaneDue>;
    task(tenant: TenantId, id: TaskId) -> Option<TaskDetail>;
    by_key(tenant: TenantId, key: IdempotencyKey) -> Option<(Task, Fingerprint)>;
    tasks(query: TaskQuery) -> TaskPage;
    counts(tenant: TenantId) -> Counts;
    attempts(tenant: TenantId, id: TaskId, after: u32, limit: usize) -> Option<Vec<Attempt>>;
    put_policy(tenant: TenantId, id: PolicyId, spec: Spec, expected: Expected, now: Timestamp) -> PutPolicy;
    policy(tenant: TenantId, id: PolicyId) -> Vec<PolicyVersion>;
    policies(tenant: TenantId, after: Option<PolicyId>, limit: usize) -> Vec<PolicyVersion>;
    delete_policy(tenant: TenantId, id: PolicyId, expected: Expected) -> DeletePolicy;
    clean(ended_before: Timestamp, from: CleanFrom, limit: usize) -> Cleaned;
    adopt_blob(tenant: TenantId, fresh: BodyRef, now: Timestamp) -> BodyRef;
    blob(tenant: TenantId, hash: BodyHash) -> Option<BodyRef>;
    condemn_blobs(adopted_before: Timestamp, after: Option<Blob>, limit: usize) -> Condemned;
    forget_blobs(blobs: Vec<Blob>) -> ();
    newest_task() -> Option<TaskId>;
    check() -> ();
}
