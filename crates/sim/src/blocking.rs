//! A real store in a simulated world: every call is waited for on the spot, whatever threads it takes.
//!
//! The world's time stands still meanwhile, so a store with threads and files of its own can be used where one in memory
//! is, and the same seed still asks it for the same things in the same order.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use async_trait::async_trait;
use redrive_core::policy::Spec;
use redrive_core::request::Fingerprint;
use redrive_core::{
    Attempt, BodyHash, BodyRef, Class, IdempotencyKey, Lane, PolicyId, Task, TaskId, TenantId, Timestamp,
};
use redrive_store::*;

/// A store whose calls complete at once.
#[derive(Debug)]
pub struct Blocking<S>(pub S);

macro_rules! passed_on {
    ($($method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl<S: Store> Store for Blocking<S> {
            $(async fn $method(&self, $($argument: $type),*) -> Result<$answer, Error> {
                wait_for(self.0.$method($($argument),*))
            })*

            fn is_exclusive(&self) -> bool {
                self.0.is_exclusive()
            }

            async fn close(&self) {
                wait_for(self.0.close());
            }
        }
    };
}

passed_on! {
    submit(tasks: Vec<NewTask>) -> Vec<Submitted>;
    claim(request: ClaimRequest) -> Claims;
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
