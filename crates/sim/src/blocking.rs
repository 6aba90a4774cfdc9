//! Runs a real store in a simulated world: every call blocks until it is complete, whatever threads it uses.
//!
//! Simulated time does not advance meanwhile. So a store with threads and files of its own can replace the one in
//! memory, and the same seed still makes the same calls in the same order.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use async_trait::async_trait;
use redrive_core::guards::Controls;
use redrive_core::idempotency::{Operation, Record, RecordKey, Reserved};
use redrive_core::policy::Spec;
use redrive_core::request::Fingerprint;
use redrive_core::task::PolicyRef;
use redrive_core::{
    Attempt, BodyHash, BodyRef, Class, IdempotencyKey, Lane, PolicyId, Task, TaskId, TenantId, Timestamp,
};
use redrive_store::*;

/// A store whose calls complete at once.
#[derive(Debug)]
pub struct Blocking<S>(pub S);

#[async_trait]
impl<S: Store> Store for Blocking<S> {
    redrive_store::own_concepts!();

    fn guard_states(&self) -> Option<&dyn GuardStates> {
        self.0.guard_states().is_some().then_some(self)
    }

    fn is_exclusive(&self) -> bool {
        self.0.is_exclusive()
    }

    async fn close(&self) {
        wait_for(self.0.close());
    }
}

#[async_trait]
impl<S: Store> GuardStates for Blocking<S> {
    fn keep(&self, states: Vec<GuardState>) {
        if let Some(guards) = self.0.guard_states() {
            guards.keep(states);
        }
    }

    async fn kept(&self, after: Option<Lane>, limit: usize) -> Result<Vec<GuardState>, Error> {
        match self.0.guard_states() {
            Some(guards) => wait_for(guards.kept(after, limit)),
            None => Ok(Vec::new()),
        }
    }
}

macro_rules! passed_on {
    ($($concept:ident of $of:ident { $($method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* })*) => {
        $(#[async_trait]
        impl<S: Store> $concept for Blocking<S> {
            $(async fn $method(&self, $($argument: $type),*) -> Result<$answer, Error> {
                wait_for(self.0.$of().$method($($argument),*))
            })*
        })*
    };
}

passed_on! {
    Tasks of tasks {
        submit(tasks: Vec<NewTask>) -> Vec<Submitted>;
        claim(request: ClaimRequest) -> Claims;
        settle(ends: Vec<Settlement>) -> Vec<Settled>;
        cancel(tasks: Vec<TaskKey>, now: Timestamp) -> Answers<CancelOutcome>;
        bring_forward(tasks: Vec<TaskKey>, now: Timestamp) -> Answers<BringForwardOutcome>;
        replay(tasks: Vec<TaskKey>, now: Timestamp) -> Answers<ReplayOutcome>;
        suppress(tasks: Vec<Suppression>, now: Timestamp) -> Answers<SuppressOutcome>;
    }
    Records of records {
        reserve(reservations: Vec<Reservation>, now: Timestamp) -> Answers<Reserved>;
        change(changes: Vec<RecordChange>, now: Timestamp) -> Answers<RecordChanged>;
        read(key: RecordKey, now: Timestamp) -> Option<Record>;
        list(query: RecordQuery) -> RecordPage;
        delete(key: RecordKey, seen: Option<SeenRecord>, now: Timestamp) -> DeletedRecord;
        counts(tenant: TenantId, after: Option<Operation>, limit: usize, most: u32) -> Vec<OperationCounts>;
        clean(now: Timestamp, limit: usize) -> usize;
    }
    LaneControls of controls {
        replace(lane: Lane, expected: Controls, new: Controls) -> bool;
        list(after: Option<Lane>, limit: usize) -> Vec<(Lane, Controls)>;
    }
    Upkeep of upkeep {
        pending_lanes(after: Option<(Lane, Class)>, limit: usize) -> Vec<LaneDue>;
        expired_leases(now: Timestamp, limit: usize) -> Vec<ClaimedTask>;
        end_overdue(now: Timestamp, limit: usize) -> Overdue;
        pending_alerts(ended_before: Timestamp, limit: usize) -> Vec<Task>;
        confirm_alerts(alerts: Vec<RaisedAlert>) -> ();
        clean(ended_before: Timestamp, from: CleanFrom, limit: usize) -> Cleaned;
        newest_task() -> Option<TaskId>;
    }
    Reads of reads {
        task(tenant: TenantId, id: TaskId) -> Option<TaskDetail>;
        by_key(tenant: TenantId, key: IdempotencyKey) -> Option<(Task, Fingerprint)>;
        list(query: TaskQuery) -> TaskPage;
        counts(tenant: TenantId) -> Counts;
        backlogs(lanes: Vec<Lane>, now: Timestamp, most: u32) -> Vec<Backlog>;
        old_retries(lanes: Vec<Lane>, accepted_before: Timestamp, look_at: u32) -> Vec<u32>;
        attempts(tenant: TenantId, id: TaskId, after: u32, limit: usize) -> Option<Vec<Attempt>>;
    }
    Policies of policies {
        put(tenant: TenantId, id: PolicyId, spec: Spec, expected: Expected, now: Timestamp) -> PutPolicy;
        versions(tenant: TenantId, id: PolicyId) -> Vec<PolicyVersion>;
        version(tenant: TenantId, policy: PolicyRef) -> Option<PolicyVersion>;
        list(tenant: TenantId, after: Option<PolicyId>, limit: usize) -> Vec<PolicyVersion>;
        delete(tenant: TenantId, id: PolicyId, expected: Expected) -> DeletePolicy;
    }
    Blobs of blobs {
        adopt(tenant: TenantId, fresh: BodyRef, now: Timestamp) -> BodyRef;
        find(tenant: TenantId, hash: BodyHash) -> Option<BodyRef>;
        condemn(adopted_before: Timestamp, after: Option<Blob>, limit: usize) -> Condemned;
        forget(blobs: Vec<Blob>) -> ();
    }
    Health of health {
        check() -> ();
    }
}

/// Waits for a future on this thread.
fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
