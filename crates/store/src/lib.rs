//! What Redrive asks of a store, and everything that is common to all stores.
//!
//! [`Store`] is the contract; `conformance` (with the feature of that name) is the suite that every implementation runs;
//! [`Shared`] is what a store for several processes has besides; [`memory`] is the store that forgets; [`group_commit`]
//! is the single writer that lets a thousand callers share one fsync.
//!
//! Not here: any database (`redrive-store-sqlite` and its siblings), any decision about retrying (`redrive-core`).

#![forbid(unsafe_code)]

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod departures;
pub mod group_commit;
pub mod memory;
mod place_id;
mod shared;
mod types;
mod vitals;

pub use departures::Departures;
pub use memory::MemoryStore;
pub use place_id::{InvalidPlaceId, PlaceId};
pub use shared::*;
pub use types::*;
pub use vitals::{Alive, Vitals};

use async_trait::async_trait;
use redrive_core::request::Fingerprint;
use redrive_core::task::PolicyRef;
use redrive_core::{
    Attempt, BodyHash, BodyRef, Class, IdempotencyKey, Lane, PolicyId, Task, TaskId, TenantId, Timestamp, policy,
};

/// Where tasks, attempts and policies are kept.
///
/// Batch first: a call takes many items and is one transaction, and `Ok` means that it survives power loss. Results
/// come in the order of the items. An error means that nothing of the call happened, with one exception that each
/// shared store documents: a connection lost during commit.
///
/// Times come from the caller; a store never asks what time it is.
///
/// A row that cannot be understood, because a newer program wrote it or somebody changed it by hand, harms itself alone. A
/// call that meets it among others sets it aside, uncounted, and goes on as if it were not there; [`set_aside`](Store::set_aside)
/// names it, and a program that understands it takes it back when it opens the store. Only a call for this very row is
/// answered with [`Error::Corrupt`].
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Keeps new tasks. An item whose idempotency key is already taken changes nothing and says by whom; keys are also
    /// compared within one call. An item that starts claimed counts its first attempt. One whose body is stored is kept
    /// only if its blob is (see [`adopt_blob`](Store::adopt_blob)), which is looked at in the same transaction.
    async fn submit(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>, Error>;

    /// Takes up to `slots + ahead` due tasks of each room, earliest due first, leases them until the attempt's timeout plus
    /// the lease's margin has passed, and counts the attempt of each. Claimed tasks come in the order of the rooms. Says for
    /// every room asked for when its next task is due.
    async fn claim(&self, request: ClaimRequest) -> Result<Claims, Error>;

    /// Ends or reschedules attempts. An item whose token is not the task's current one, or whose task is no longer in
    /// flight, changes nothing and is `LeaseLost`. Attempt log, new state and due time are one transaction. A task with
    /// a cancel requested ends CANCELLED unless this attempt succeeded. Of an answer whose stored body is no longer kept,
    /// the rest is.
    async fn settle(&self, ends: Vec<Settlement>) -> Result<Vec<Settled>, Error>;

    /// Takes a task back: a pending one ends CANCELLED now, one in flight is marked so that no further attempt begins.
    async fn cancel(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<Cancelled, Error>;

    /// Makes a pending task due at `now`, if it is not due earlier.
    async fn bring_forward(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<BroughtForward, Error>;

    /// Puts a dead letter back to work, on the same task: pending and due at `now`, in a new run with the attempts and the
    /// time of the one before. It pins its policy again, its answer is dropped, its attempt log goes on.
    async fn replay(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<Replay, Error>;

    /// Dead letters that ended before `ended_before` and that nobody has [`announced`](Store::announced), the one that
    /// ended first coming first, at most `limit`. A settle that makes a dead letter notes it here in its own transaction;
    /// a replay or a cleaning of the task removes the note.
    async fn unannounced(&self, ended_before: Timestamp, limit: usize) -> Result<Vec<Task>, Error>;

    /// Notes that the alerts of these dead letters have been raised. Saying so twice, or of what is no longer a dead
    /// letter of that run, changes nothing.
    async fn announced(&self, dead_letters: Vec<Announced>) -> Result<(), Error>;

    /// Tasks in flight whose lease has run out by `now`, at most `limit`. Reads only: the rescuer settles each with
    /// the token that it finds, so whoever settles first wins.
    async fn expired(&self, now: Timestamp, limit: usize) -> Result<Vec<Claimed>, Error>;

    /// Ends pending tasks whose deadline is at or before `now`, at most `limit`, earliest deadline first: EXHAUSTED, reason
    /// `deadline`, without an attempt, noted as [`unannounced`](Store::unannounced) dead letters like any other. Costs one
    /// index probe when there is none.
    async fn end_overdue(&self, now: Timestamp, limit: usize) -> Result<Overdue, Error>;

    /// The classes of lanes that have pending tasks, in order after `after`, at most `limit`, each with its earliest due
    /// time. Costs one index probe per class of a lane, whatever the backlog.
    async fn pending_lanes(&self, after: Option<(Lane, Class)>, limit: usize) -> Result<Vec<LaneDue>, Error>;

    /// One task with its request and, once it has ended, the dependency's answer.
    async fn task(&self, tenant: TenantId, id: TaskId) -> Result<Option<TaskDetail>, Error>;

    /// The task that an idempotency key belongs to, and what made its request.
    async fn by_key(&self, tenant: TenantId, key: IdempotencyKey) -> Result<Option<(Task, Fingerprint)>, Error>;

    /// A page of tasks, newest first. A page may be short, even empty, and still have a `next`: one call looks at a
    /// bounded number of rows.
    async fn tasks(&self, query: TaskQuery) -> Result<TaskPage, Error>;

    /// How many tasks the tenant has in each status, without counting them one by one.
    async fn counts(&self, tenant: TenantId) -> Result<Counts, Error>;

    /// A task's attempts with a number above `after`, ascending, at most `limit`; `None` if there is no such task.
    async fn attempts(
        &self,
        tenant: TenantId,
        id: TaskId,
        after: u32,
        limit: usize,
    ) -> Result<Option<Vec<Attempt>>, Error>;

    /// Keeps a policy. The same spec as the current version changes nothing; another one becomes the next version.
    async fn put_policy(
        &self,
        tenant: TenantId,
        id: PolicyId,
        spec: policy::Spec,
        expected: Expected,
        now: Timestamp,
    ) -> Result<PutPolicy, Error>;

    /// All kept versions of a policy that can be understood, oldest first; empty if there is no such policy. An error if the
    /// current one cannot be: an older one must not take its place. A version that is not the current one may be cleaned
    /// away once no task refers to it.
    async fn policy(&self, tenant: TenantId, id: PolicyId) -> Result<Vec<PolicyVersion>, Error>;

    /// One version of a policy, if it is kept.
    async fn policy_version(&self, tenant: TenantId, policy: PolicyRef) -> Result<Option<PolicyVersion>, Error> {
        let versions = self.policy(tenant, policy.id).await?;
        Ok(versions.into_iter().find(|version| version.version == policy.version))
    }

    /// The current version of each policy with an id above `after`, in order, at most `limit`.
    async fn policies(
        &self,
        tenant: TenantId,
        after: Option<PolicyId>,
        limit: usize,
    ) -> Result<Vec<PolicyVersion>, Error>;

    /// Removes a policy, unless a task that has not ended pins one of its versions.
    async fn delete_policy(&self, tenant: TenantId, id: PolicyId, expected: Expected) -> Result<DeletePolicy, Error>;

    /// Removes tasks that ended before `ended_before`, with all that belongs to them, looking at no more than `limit`
    /// rows from `from` on; says where to go on, or `None` when the pass is complete.
    async fn clean(&self, ended_before: Timestamp, from: CleanFrom, limit: usize) -> Result<Cleaned, Error>;

    /// Keeps an object for this content, and says which: the one that is kept already, or else `fresh`. It stays for as long
    /// as a task refers to it, and for a while after `now` even if none does. Called *before* the object is put where its
    /// name says, so that every object in its place is, or once was, known here.
    async fn adopt_blob(&self, tenant: TenantId, fresh: BodyRef, now: Timestamp) -> Result<BodyRef, Error>;

    /// The object that is kept for this content.
    async fn blob(&self, tenant: TenantId, hash: BodyHash) -> Result<Option<BodyRef>, Error>;

    /// Condemns blobs that were last adopted before `adopted_before` and that no task refers to, looking at no more than
    /// `limit` of those after `after`. A condemned blob is not kept any more: no task can refer to it from that commit
    /// on, so whoever learns of it here may delete its object, however late. It is named again in every pass, until it
    /// is [forgotten](Store::forget_blobs).
    ///
    /// This and `submit` must exclude each other for the same blob: whichever commits first, the other sees it.
    async fn condemn_blobs(
        &self,
        adopted_before: Timestamp,
        after: Option<Blob>,
        limit: usize,
    ) -> Result<Condemned, Error>;

    /// Forgets condemned blobs whose objects have been deleted. What is not condemned stays.
    async fn forget_blobs(&self, blobs: Vec<Blob>) -> Result<(), Error>;

    /// What is set aside because it cannot be understood: how many rows, and the first `limit` of them.
    async fn set_aside(&self, _limit: usize) -> Result<SetAside, Error> {
        Ok(SetAside::default())
    }

    /// Whether what was kept here is still where the next start looks for it: files may have been deleted or replaced under a
    /// process that has them open. A part of [`check`](Store::check).
    async fn check_place(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Ends if a part of the store that works by itself (a thread, a task) has died, and says which. The process has to be
    /// started again then.
    async fn died(&self) -> &'static str {
        std::future::pending().await
    }

    /// The newest task id ever kept here: ids handed out later must be above it.
    async fn newest_task(&self) -> Result<Option<TaskId>, Error>;

    /// Whether the store can be written to right now.
    async fn check(&self) -> Result<(), Error>;

    /// Whether no other process can write here: what this process does not hold, nobody holds, and nothing becomes due
    /// without this process knowing.
    fn is_exclusive(&self) -> bool;

    /// What processes that share this store have in common; `None` if it has one owner.
    fn shared(&self) -> Option<&dyn Shared> {
        None
    }

    /// Finishes what is queued and closes files. Calls after this fail with [`Error::Closed`].
    async fn close(&self);
}
