//! Typed events of the engine. Each is emitted in one place, and delivered to every [`Sink`].
//!
//! Sinks are called synchronously, on the path of every task, so they only count or write a log line. A live view must
//! read from a bounded buffer that a sink fills, with a count of what was dropped. Alerts of dead letters do not depend
//! on sinks: they come from durable notes in the store (`announcer`), which emit [`Event::DeadLetter`].
//!
//! `log` is the sink that writes the engine's log lines.

mod log;

use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Duration;

use redrive_core::guards::{Gone, Held, breaker};
use redrive_core::{Attempt, Lane, Status, Task, TaskId, Timestamp};
use redrive_store::{ClaimedTask, Settlement};

use crate::common_clock::ClockState;
use crate::options::LogOptions;
use crate::slots::NoSlot;
use log::Log;

/// An event of the engine.
#[derive(Clone, Copy)]
pub enum Event<'a> {
    /// A new task was stored.
    Accepted(&'a Task),
    /// The tasks of one call were stored in this time.
    Stored {
        /// From the call to the end of the commit.
        took: Duration,
    },
    /// An attempt was claimed: it is counted and durable, and not sent yet.
    Claimed(&'a ClaimedTask),
    /// An attempt passed its last check, and its request is being written. Emitted once for each attempt.
    Sent(SentAttempt<'a>),
    /// An attempt was made and has an outcome; nothing of it is stored yet.
    AttemptEnded(&'a Task, &'a Attempt),
    /// The end of a claim was stored, and the task has this status now.
    Settled(&'a ClaimedTask, &'a Settlement, Status),
    /// The task waits for its next attempt, due at this time. A claim that was given back unsent is no retry.
    Retried(&'a Task, Timestamp),
    /// The end of a claim was not stored, because the lease was lost. Also if an earlier try was committed and its answer was
    /// lost: then the task is settled, and no other event says so.
    LeaseLost(&'a Task),
    /// The lease of an attempt expired, and this process settles it.
    TakenOver(&'a Task),
    /// A lane with due work gets no slot.
    HeldBack(&'a Lane, HoldReason),
    /// The circuit breaker of a lane opened or closed.
    Breaker(&'a Lane, breaker::Change),
    /// The dependency of this task seems to be gone for good: it answered 410, or no attempt has succeeded for 24 hours.
    /// Emitted at most once an hour, or once a day, for a lane; each process emits its own.
    DependencyGone(&'a Task, Gone),
    /// A lane was paused, because its dependency seems to be gone and the task's policy says `pauseOnGone`.
    PausedOnGone(&'a Task),
    /// A task ended in this status. If an attempt ended it, the task is as it was before.
    Ended(&'a Task, Status, EndedBy),
    /// A task ended as a dead letter: this is its alert. It may be raised more than once.
    DeadLetter(&'a Task),
    /// The policy of a claimed task cannot be read now: the task waits.
    PolicyUnavailable(&'a Task, &'a dyn Display),
    /// The policy of a claimed task is damaged or gone: the task ends.
    PolicyLost(&'a Task, &'a dyn Display),
    /// The stored body of a claimed task cannot be read now: the task waits. The number counts such tasks since the
    /// last report; it is `None` if no report is due.
    BodyUnavailable(&'a Task, Option<u64>, &'a dyn Display),
    /// A loop of the engine ended or panicked.
    LoopFailed(&'static str),
    /// A report about the engine's own work, not about one task.
    Report(Report<'a>),
}

/// An attempt whose first byte was sent.
#[derive(Debug, Clone, Copy)]
pub struct SentAttempt<'a> {
    /// The task's lane.
    pub lane: &'a Lane,
    /// The task's id.
    pub task: TaskId,
    /// The attempt's number over all runs.
    pub attempt: u32,
    /// When it was due.
    pub due_at: Option<Timestamp>,
    /// When its first byte was sent.
    pub sent_at: Timestamp,
}

/// Why a lane gets no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldReason {
    /// The lane has as many slots as it may have.
    LaneLimit,
    /// Too few slots are free in its pool.
    Capacity,
    /// The tenant's lanes hold their share.
    TenantShare,
    /// The claimed bodies in memory take up their limit.
    Memory,
    /// The lane is slow, and slow lanes start their attempts at a limited rate.
    StartRate,
    /// The circuit breaker is open, or its probes are under way.
    Breaker,
    /// The retry budget is spent: the lane's retries wait.
    Budget,
    /// An operator paused the lane.
    Pause,
}

impl From<Held> for HoldReason {
    fn from(held: Held) -> Self {
        match held {
            Held::Breaker(_) => HoldReason::Breaker,
            Held::Budget(_) => HoldReason::Budget,
            Held::Pause => HoldReason::Pause,
        }
    }
}

impl From<NoSlot> for HoldReason {
    fn from(held: NoSlot) -> Self {
        match held {
            NoSlot::LaneLimit => HoldReason::LaneLimit,
            NoSlot::Pool => HoldReason::Capacity,
            NoSlot::Tenant => HoldReason::TenantShare,
            NoSlot::Memory => HoldReason::Memory,
            NoSlot::Paced(_) | NoSlot::StartRate => HoldReason::StartRate,
        }
    }
}

/// What ended a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The settlement of a claim, sent or not.
    Settlement,
    /// A cancel while the task waited.
    Cancel,
    /// The task's deadline, while it waited.
    Deadline,
    /// The retry budget, which was spent when a retry was due that a caller waits for.
    Budget,
}

/// A report about the engine's own work.
#[derive(Clone, Copy)]
pub enum Report<'a> {
    /// A call of the store failed.
    StoreCallFailed(&'static str, &'a dyn Display),
    /// An outage of the store began with this call.
    StoreOutageBegan(&'static str, &'a dyn Display),
    /// The outage goes on; this many calls have failed.
    StoreOutageGoesOn(u64, &'static str, &'a dyn Display),
    /// The outage is over; this many calls failed in this time.
    StoreOutageEnded(u64, Duration),
    /// This many dead letters were found whose alert had not been raised.
    AlertsFound(usize),
    /// This many raised alerts could not be confirmed and are tried again.
    AlertsUnconfirmed(usize, &'a dyn Display),
    /// This many tasks passed their deadline before this process looked for the first time.
    OverdueAtStart(usize),
    /// An attempt could not be settled; its lease will expire.
    Unsettled(TaskId, &'a dyn Display),
    /// A pass of the cleaner removed this many tasks.
    Cleaned(usize),
    /// This many idempotency records were removed, because they had expired.
    RecordsCleaned(usize),
    /// A pass of the cleaner failed.
    CleaningFailed(&'a dyn Display),
    /// Stored bodies are not collected, because this is not the location where they are kept.
    WrongBodyLocation(&'a dyn Display),
    /// A pass of the collector deleted this many stored bodies.
    BodiesDeleted(usize),
    /// A pass of the collector failed.
    CollectingFailed(&'a dyn Display),
    /// A stored body could not be deleted.
    BodyNotDeleted(&'a dyn Display),
    /// This many uploads that had broken off were deleted.
    UploadsDeleted(usize),
    /// Uploads that had broken off could not be deleted.
    UploadsNotDeleted(&'a dyn Display),
    /// The store's clock could not be read.
    ClockUnread(&'a dyn Display),
    /// The machine's clock is off, or right again. The flag is whether the store is shared.
    MachineClock(ClockState, bool),
    /// The time that the engine works on became certain or uncertain.
    CommonTime(ClockState),
    /// This process could not announce that it leaves.
    LeavingFailed(&'a dyn Display),
    /// The grace of a stop is over; this many attempts are given up.
    AttemptsGivenUp(usize),
    /// The store does not answer during a stop.
    StoreSilent(&'static str),
    /// A caller was gone before its answer.
    CallerGone,
}

/// Receives events. Called on the path of every task: it must be quick and must not block.
pub trait Sink: Send + Sync + 'static {
    /// Handles an event.
    fn on(&self, event: &Event<'_>);
}

/// Emits the engine's events to all sinks. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Events(Arc<[Arc<dyn Sink>]>);

impl Events {
    /// Emits to the log and to these sinks.
    pub(crate) fn new(options: LogOptions, sinks: Vec<Arc<dyn Sink>>) -> Self {
        let log: Arc<dyn Sink> = Arc::new(Log(options));
        Events(std::iter::once(log).chain(sinks).collect())
    }

    pub(crate) fn emit(&self, event: Event<'_>) {
        self.0.iter().for_each(|sink| sink.on(&event));
    }

    pub(crate) fn report(&self, report: Report<'_>) {
        self.emit(Event::Report(report));
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Events").field(&self.0.len()).finish()
    }
}
