//! What goes into a store and what comes out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::request::Fingerprint;
use redrive_core::{
    Answer, Attempt, BodyRef, Class, Dependency, Lane, PolicyId, Reason, Request, Status, Task, TaskId, TenantId,
    Timestamp, policy,
};

/// Why a store could not do what it was asked; nothing of the call happened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// There is no space left; it heals by itself once there is.
    #[error("the store has no space left: {0}")]
    Full(String),
    /// The store cannot be reached or used right now.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// What is stored cannot be understood.
    #[error("the store holds what it should not: {0}")]
    Corrupt(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// A task to keep.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// Its state at acceptance: PENDING with a due time, attempt 0 of its first run. `start` decides what becomes of it.
    pub task: Task,
    /// What it sends.
    pub request: Arc<Request>,
    /// What makes two submissions the same request.
    pub fingerprint: Fingerprint,
    /// Whether it waits or is claimed in the same commit.
    pub start: Start,
}

/// How a new task begins.
#[derive(Debug, Clone, Copy)]
pub enum Start {
    /// It waits for its due time.
    Pending,
    /// It is due now and its lane has room: inserted as the first claim, at this moment.
    Claimed(LeaseTerms, Timestamp),
}

/// What became of a new task.
#[derive(Debug, Clone, PartialEq)]
pub enum Submitted {
    /// Kept; with its lease if it started claimed.
    Created(Option<Lease>),
    /// The key belongs to this task, and the request was the same.
    Replayed(Box<Task>),
    /// The key belongs to this task, and the request was another.
    KeyReused(TaskId),
    /// The key belongs to this task, which cannot be understood: whether the request was the same is not known.
    KeyUnreadable(TaskId),
    /// The policy version that it pins is gone.
    PolicyGone,
    /// Its body refers to a blob that is not kept any more: it must be uploaded again.
    BodyGone,
}

/// How long leases last.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTerms {
    /// The time beyond the attempt's own timeout.
    pub margin: Duration,
}

impl LeaseTerms {
    /// When a lease runs out that is taken at `now` for an attempt of at most `attempt_timeout` that is due at `due`. A task
    /// that is claimed shortly before it is due keeps the whole lease for its attempt.
    pub fn until(&self, now: Timestamp, due: Option<Timestamp>, attempt_timeout: Duration) -> Timestamp {
        now.max(due.unwrap_or(now)).after(attempt_timeout).after(self.margin)
    }
}

/// The right to work on a task until a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Grows with every claim of the task.
    pub token: Token,
    /// When it was taken.
    pub since: Timestamp,
    /// When it runs out.
    pub until: Timestamp,
}

/// A fencing token: per task, only ever growing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub u64);

/// A request for due work.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// How much is wanted of which lane; each pair of lane and class at most once.
    pub rooms: Vec<LaneRoom>,
    /// The most tasks in all. Rooms are served in their order until this many tasks are claimed.
    pub most: usize,
    /// Only tasks that are due by then: `now`, or shortly after, for tasks that are held until they are due.
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
    /// How many more may be claimed ahead of the slots that will become free. A task whose next attempt is its last one is
    /// never claimed ahead, because a crash would end it unsent: the first such task that does not fit ends the room.
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

/// What ending overdue tasks did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overdue {
    /// The tasks that were ended, EXHAUSTED by their deadline.
    pub ended: Vec<Task>,
    /// The earliest deadline of the tasks that are still pending.
    pub next_deadline: Option<Timestamp>,
}

/// What a store holds and this program cannot understand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetAside {
    /// How many rows.
    pub count: u64,
    /// The first of them.
    pub rows: Vec<Unreadable>,
}

/// A row that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Which row of which kind.
    pub row: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What a claim brought.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Claims {
    /// The tasks, in flight now, each with its attempt counted.
    pub claimed: Vec<Claimed>,
    /// For each room asked for, in order, what is left in that class of the lane.
    pub lanes: Vec<LaneDue>,
}

/// A task that somebody has a lease on.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// Its state after the claim.
    pub task: Task,
    /// What to send.
    pub request: Arc<Request>,
    /// The lease.
    pub lease: Lease,
}

/// The end of an attempt.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// Whose task.
    pub tenant: TenantId,
    /// Which task.
    pub id: TaskId,
    /// The token of the lease under which it was worked on.
    pub token: Token,
    /// The line for the attempt log. `None` if nothing was sent: the attempt that the claim counted is taken back.
    pub attempt: Option<Attempt>,
    /// What happens to the task.
    pub next: Next,
    /// When it was decided.
    pub at: Timestamp,
}

/// What happens to a task after an attempt.
#[derive(Debug, Clone)]
pub enum Next {
    /// It waits for its next attempt.
    RetryAt {
        /// When that is due.
        at: Timestamp,
        /// The wait that was drawn, for the next draw to build on.
        backoff: Option<Duration>,
        /// Attempts of this run that failed by DNS, for the next decision to build on.
        dns_failures: u32,
    },
    /// It ends.
    End {
        /// How.
        status: Status,
        /// Why; `None` for SUCCEEDED.
        reason: Option<Reason>,
        /// The dependency's last answer, if there was one.
        answer: Option<Box<Answer>>,
    },
}

/// Whether a settlement took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It did; the task is in this state now (a cancel requested in flight may have changed it).
    Done(Status),
    /// The lease was somebody else's by then; nothing changed.
    LeaseLost,
}

/// What a cancel found.
#[derive(Debug, Clone, PartialEq)]
pub enum Cancelled {
    /// The task is cancelled, or will be once the attempt under way ends.
    Done(Box<Task>),
    /// The task had ended already.
    AlreadyEnded(Box<Task>),
    /// There is no such task.
    NotFound,
}

/// What bringing a task forward found.
#[derive(Debug, Clone, PartialEq)]
pub enum BroughtForward {
    /// The task is due now.
    Done(Box<Task>),
    /// An attempt is under way already.
    InFlight(Box<Task>),
    /// The task had ended already.
    AlreadyEnded(Box<Task>),
    /// There is no such task.
    NotFound,
}

/// What replaying a dead letter found. (A submission that meets its own key again is another matter:
/// [`Submitted::Replayed`].)
#[derive(Debug, Clone, PartialEq)]
pub enum Replay {
    /// The task is due now, in a new run.
    Done(Box<Task>),
    /// The task is no dead letter: it has not ended, or it ended SUCCEEDED or CANCELLED.
    NotDead(Box<Task>),
    /// The policy version that it pins was deleted: there are no rules left to send it by.
    PolicyGone(Box<Task>),
    /// There is no such task.
    NotFound,
}

/// A dead letter whose alert has been raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// Whose task.
    pub tenant: TenantId,
    /// Which task.
    pub id: TaskId,
    /// The run that ended: a later one that ends too has an alert of its own.
    pub run: u32,
}

/// A task with all that is kept of it but its attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskDetail {
    /// Its state.
    pub task: Task,
    /// What it sends.
    pub request: Arc<Request>,
    /// What the dependency answered last, once the task has ended.
    pub answer: Option<Answer>,
}

/// Which tasks to list.
#[derive(Debug, Clone)]
pub struct TaskQuery {
    /// Whose.
    pub tenant: TenantId,
    /// Only these statuses; all if empty.
    pub statuses: Vec<Status>,
    /// Only this dependency.
    pub dependency: Option<Dependency>,
    /// Only this policy, whatever its version.
    pub policy: Option<PolicyId>,
    /// Only tasks with all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Only tasks accepted at or after this moment.
    pub created_from: Option<Timestamp>,
    /// Only tasks accepted before this moment.
    pub created_before: Option<Timestamp>,
    /// Only tasks with an id below this one: the `next` of the page before.
    pub below: Option<TaskId>,
    /// At most this many.
    pub limit: usize,
}

/// A page of tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskPage {
    /// The tasks, newest first.
    pub tasks: Vec<TaskDetail>,
    /// Where the next page begins, if there may be one.
    pub next: Option<TaskId>,
}

/// Tasks by status; a status without tasks may be absent.
pub type Counts = BTreeMap<Status, u64>;

/// One version of a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyVersion {
    /// The policy.
    pub id: PolicyId,
    /// The version, from 1.
    pub version: u32,
    /// Its fields, as they were given.
    pub spec: policy::Spec,
    /// When this version was made.
    pub created_at: Timestamp,
}

/// What a writer expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Whatever is there.
    Anything,
    /// Exactly this current version.
    Version(u32),
    /// No such policy yet.
    Absent,
}

/// What putting a policy did.
#[derive(Debug, Clone, PartialEq)]
pub enum PutPolicy {
    /// There was none; this is its first version (above all versions that an earlier policy of this name had).
    Created(PolicyVersion),
    /// This is a new version.
    Updated(PolicyVersion),
    /// It was the same already.
    Unchanged(PolicyVersion),
    /// Not what was expected; the current version, if there is one.
    Conflict(Option<u32>),
}

/// What deleting a policy did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletePolicy {
    /// It is gone.
    Done,
    /// There is no such policy.
    NotFound,
    /// This many tasks that have not ended pin it.
    Pinned(u64),
    /// Not what was expected; the current version.
    Conflict(u32),
}

/// Where a cleaning pass goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleanFrom {
    /// At the oldest task.
    Start,
    /// Behind this task.
    After(TaskId),
}

/// What one step of cleaning did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cleaned {
    /// How many tasks were removed.
    pub removed: usize,
    /// Where to go on, `None` when the pass is complete.
    pub next: Option<CleanFrom>,
}

/// An object that holds a body, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Blob {
    /// Whose.
    pub tenant: TenantId,
    /// What it holds, and which object it is.
    pub body: BodyRef,
}

/// What one step of collecting found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condemned {
    /// Blobs that no task refers to and none ever will: their objects are to be deleted.
    pub blobs: Vec<Blob>,
    /// Where to go on, `None` when the pass is complete.
    pub next: Option<Blob>,
}
