//! Changing tasks: submit, claim, settle, cancel, bring forward, replay, suppress.
//!
//! Every call takes many items, is one transaction, and answers each item in order. The rules for what a call does to
//! one task are the same in every backend: see [`rules`](crate::rules). Callers bound the number of items: a transaction
//! holds the locks of all of them until it commits.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redrive_core::request::Fingerprint;
use redrive_core::{Answer, Attempt, Class, Lane, Reason, Request, Status, Task, TaskId, TenantId, Timestamp};

use crate::Error;

/// Changes tasks.
#[async_trait]
pub trait Tasks: Send + Sync {
    /// Stores new tasks. An item whose idempotency key is taken changes nothing and is answered with the key's task;
    /// keys are also compared within one call. An item that starts claimed counts its first attempt. An item with a
    /// stored body is accepted only if its blob is [kept](crate::Blobs::adopt), which is checked in the same
    /// transaction.
    async fn submit(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>, Error>;

    /// Claims up to `slots + ahead` due tasks of each room, earliest due first: leases them for the attempt's timeout
    /// plus the lease's margin, and counts the attempt of each. Claimed tasks come in the order of the rooms. Returns
    /// for every room when its next task is due.
    async fn claim(&self, request: ClaimRequest) -> Result<Claims, Error>;

    /// Ends or reschedules attempts. An item whose token is not the task's current one, or whose task is no longer in
    /// flight, changes nothing and is `LeaseLost`. Attempt log, new state and due time are one transaction. A task whose
    /// cancel was requested ends CANCELLED unless this attempt succeeded. If the stored body of an answer is no longer kept,
    /// the answer is stored without it.
    async fn settle(&self, ends: Vec<Settlement>) -> Result<Vec<Settled>, Error>;

    /// Cancels tasks: a pending one ends CANCELLED now, one in flight is marked so that no further attempt begins.
    async fn cancel(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<CancelOutcome>, Error>;

    /// Makes pending tasks due at `now`, unless they are due earlier.
    async fn bring_forward(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<BringForwardOutcome>, Error>;

    /// Starts a new run of dead letters, on the same tasks: pending and due at `now`, with as many attempts and as much
    /// time as the run before. A replayed task pins its policy again, its answer is dropped, and its attempt log
    /// continues.
    async fn replay(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<ReplayOutcome>, Error>;

    /// Ends pending tasks because the retry budget of their dependency is spent: EXHAUSTED, reason `budget`, without an
    /// attempt, with a [pending alert](crate::Upkeep::pending_alerts) like any dead letter. The last error is kept. A task
    /// that has made another number of attempts meanwhile, or does not wait any more, is unchanged.
    async fn suppress(&self, tasks: Vec<Suppression>, now: Timestamp) -> Result<Answers<SuppressOutcome>, Error>;
}

/// The calls for a single task.
impl dyn Tasks + '_ {
    /// [Cancels](Tasks::cancel) one task.
    pub async fn cancel_one(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<CancelOutcome, Error> {
        only(self.cancel(vec![TaskKey { tenant, id }], now).await?)
    }

    /// [Brings](Tasks::bring_forward) one task forward.
    pub async fn bring_one_forward(
        &self,
        tenant: TenantId,
        id: TaskId,
        now: Timestamp,
    ) -> Result<BringForwardOutcome, Error> {
        only(self.bring_forward(vec![TaskKey { tenant, id }], now).await?)
    }

    /// [Replays](Tasks::replay) one dead letter.
    pub async fn replay_one(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<ReplayOutcome, Error> {
        only(self.replay(vec![TaskKey { tenant, id }], now).await?)
    }
}

/// The answer to a call with one item.
pub(crate) fn only<T>(answers: Answers<T>) -> Result<T, Error> {
    let none = || Err(Error::Corrupt("a call with one item was not answered".to_owned()));
    answers.into_iter().next().unwrap_or_else(none)
}

/// One answer for each task of a call, in order. A task whose row cannot be read is answered with [`Error::Corrupt`] and
/// does not affect the others.
pub type Answers<T> = Vec<Result<T, Error>>;

/// A task's tenant and id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskKey {
    /// The tenant.
    pub tenant: TenantId,
    /// The task's id.
    pub id: TaskId,
}

/// A waiting task whose next attempt is not to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppression {
    /// The task's tenant.
    pub tenant: TenantId,
    /// The task's id.
    pub id: TaskId,
    /// How many attempts the task had made when this was decided. If it has made another one since, it is not ended.
    pub attempt_number: u32,
}

/// A task to store.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// Its state at acceptance: PENDING with a due time, attempt 0 of its first run. `start` decides whether it starts
    /// claimed.
    pub task: Task,
    /// The request that it sends.
    pub request: Arc<Request>,
    /// The fingerprint of the request: two submissions with the same one are the same request.
    pub fingerprint: Fingerprint,
    /// Whether it waits or is claimed in the same commit.
    pub start: Start,
}

/// How a new task begins.
#[derive(Debug, Clone, Copy)]
pub enum Start {
    /// The task waits for its due time.
    Pending,
    /// The task is due now and its lane has room: it is inserted as claimed, at this time.
    Claimed(LeaseTerms, Timestamp),
}

/// The answer to a new task.
#[derive(Debug, Clone, PartialEq)]
pub enum Submitted {
    /// The task as it is stored, with its lease if it started claimed.
    Created(Box<Task>, Option<Lease>),
    /// The key belongs to this task, and its request is the same.
    Replayed(Box<Task>),
    /// The key belongs to this task, and its request is another.
    KeyReused(TaskId),
    /// The key belongs to this task, whose fingerprint has this other version: the caller makes one of that version and
    /// compares.
    KeyOfVersion(Box<Task>, Fingerprint),
    /// The key belongs to this task, whose row cannot be read: whether the request was the same is not known.
    KeyUnreadable(TaskId),
    /// The policy version that the task pins does not exist any more.
    PolicyGone,
    /// The blob that the task's body refers to is not kept any more: it must be uploaded again.
    BodyGone,
}

/// How long leases last.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTerms {
    /// The time beyond the attempt's own timeout.
    pub margin: Duration,
}

impl LeaseTerms {
    /// When a lease expires that is taken at `now` for an attempt of at most `attempt_timeout` that is due at `due`. A
    /// task that is claimed shortly before it is due keeps the whole lease for its attempt.
    pub fn until(&self, now: Timestamp, due: Option<Timestamp>, attempt_timeout: Duration) -> Timestamp {
        now.max(due.unwrap_or(now)).after(attempt_timeout).after(self.margin)
    }
}

/// The right to work on a task until a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The fencing token, which grows with every claim of the task.
    pub token: Token,
    /// When the lease was taken.
    pub since: Timestamp,
    /// When the lease expires.
    pub until: Timestamp,
}

/// A fencing token: one per task, which only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub u64);

/// A request for due tasks.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// How many tasks of which lanes to claim; each pair of lane and class at most once.
    pub rooms: Vec<LaneRoom>,
    /// The most tasks in all. Rooms are served in their order until this many tasks are claimed.
    pub most: usize,
    /// Only tasks that are due by this time: `now`, or shortly after for tasks that are held in memory until they are
    /// due.
    pub due_by: Timestamp,
    /// How long the leases last. A lease runs from `now` or from the task's due time, whichever is later.
    pub lease: LeaseTerms,
    /// The present moment.
    pub now: Timestamp,
}

/// How many tasks of one class of a lane may be claimed now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneRoom {
    /// The lane.
    pub lane: Lane,
    /// The class.
    pub class: Class,
    /// How many tasks get a slot at once.
    pub slots: usize,
    /// How many more may be claimed ahead of the slots that will become free. A task whose next attempt is its last one
    /// is never claimed ahead, because a crash would end it unsent. The first such task that does not fit ends the
    /// room.
    pub ahead: usize,
}

/// The earliest due time of one class of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneDue {
    /// The lane.
    pub lane: Lane,
    /// The class.
    pub class: Class,
    /// When its earliest pending task is due; `None` if it has no pending task.
    pub next_due: Option<Timestamp>,
}

/// The answer to a claim.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Claims {
    /// The claimed tasks, in flight now, each with its attempt counted.
    pub claimed: Vec<ClaimedTask>,
    /// For each requested room, in order, the next due time of that class of the lane.
    pub lanes: Vec<LaneDue>,
}

/// A task with a lease on it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedTask {
    /// Its state after the claim.
    pub task: Task,
    /// The request to send.
    pub request: Arc<Request>,
    /// The lease.
    pub lease: Lease,
}

/// The end of an attempt.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// The task's tenant.
    pub tenant: TenantId,
    /// The task's id.
    pub id: TaskId,
    /// The token of the lease that the attempt was made under.
    pub token: Token,
    /// The entry for the attempt log. `None` if nothing was sent: the attempt that the claim counted is taken back.
    pub attempt: Option<Attempt>,
    /// What happens to the task.
    pub next: Next,
    /// When the outcome was decided.
    pub at: Timestamp,
}

/// What happens to a task after an attempt.
#[derive(Debug, Clone)]
pub enum Next {
    /// The task waits for its next attempt.
    RetryAt {
        /// When the next attempt is due.
        at: Timestamp,
        /// The wait that was drawn, as the input of the next draw.
        backoff: Option<Duration>,
        /// Attempts of this run that failed by DNS, as an input of the next decision.
        dns_failures: u32,
    },
    /// The task ends.
    End {
        /// The final status.
        status: Status,
        /// Why the task ended; `None` for SUCCEEDED.
        reason: Option<Reason>,
        /// The dependency's last answer, if there was one.
        answer: Option<Box<Answer>>,
    },
}

/// The answer to a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The settlement took effect; the task has this status now (a cancel requested in flight may have changed it).
    Done(Status),
    /// The lease was no longer held; nothing changed.
    LeaseLost,
}

/// The answer to a cancel.
#[derive(Debug, Clone, PartialEq)]
pub enum CancelOutcome {
    /// The task is cancelled, or will be once the attempt under way ends.
    Done(Box<Task>),
    /// The task had ended before.
    AlreadyEnded(Box<Task>),
    /// There is no such task.
    NotFound,
}

/// The answer to bringing a task forward.
#[derive(Debug, Clone, PartialEq)]
pub enum BringForwardOutcome {
    /// The task is due now.
    Done(Box<Task>),
    /// An attempt is under way.
    InFlight(Box<Task>),
    /// The task had ended before.
    AlreadyEnded(Box<Task>),
    /// There is no such task.
    NotFound,
}

/// The answer to the replay of a dead letter. (A submission whose key is already stored is [`Submitted::Replayed`].)
#[derive(Debug, Clone, PartialEq)]
pub enum ReplayOutcome {
    /// The task is due now, in a new run.
    Done(Box<Task>),
    /// The task is no dead letter: it has not ended, or it ended SUCCEEDED or CANCELLED.
    NotDead(Box<Task>),
    /// The policy version that the task pins was deleted, so there are no rules to send it by.
    PolicyGone(Box<Task>),
    /// There is no such task.
    NotFound,
}

/// The answer to a suppression.
#[derive(Debug, Clone, PartialEq)]
pub enum SuppressOutcome {
    /// The task has ended.
    Done(Box<Task>),
    /// Nothing changed: the task is in flight, has ended, is to be cancelled, or has made another number of attempts.
    NotWaiting(Box<Task>),
    /// There is no such task.
    NotFound,
}
