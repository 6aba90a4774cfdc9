//! What is known from outside about every task and every fault: the ledger of a chaos run.
//!
//! It lives in this process's memory, so nothing that is broken can touch it. Times are microseconds since the epoch, on
//! the clock that all processes of this machine share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::{Attempt, Counts, Task};
use crate::clock::now_us;
use crate::witness::{Alert, Arrival, Asked};

/// Everything that happened, for the rules to look at.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// How much longer than an attempt's timeout its lease lasts, in milliseconds.
    pub lease_margin_ms: u64,
    /// What callers asked for, by idempotency key: one request, or several that contend for the key.
    pub asked: BTreeMap<String, Vec<Asked>>,
    /// Every submission that was answered for good.
    pub answers: Vec<Answer>,
    /// Every request that the target read, in its order.
    pub arrivals: Vec<Arrival>,
    /// Everything that the API said about a task during the run.
    pub sightings: Vec<Sighting>,
    /// Lines of the attempt log that the API showed during the run, by task and number.
    pub lines_seen: BTreeMap<(String, u32), Attempt>,
    /// When a caller began to ask for a task's replay, whatever came of it, by task.
    pub replays_asked: BTreeMap<String, Vec<u64>>,
    /// Everything that was broken.
    pub faults: Vec<Fault>,
    /// How often the submission of a large body was answered 503.
    pub large_refused: u64,
    /// How long each node stood still.
    pub pauses: Vec<Pause>,
    /// Nodes that ended although nobody had ended them, with what they said.
    pub deaths: Vec<String>,
    /// The alerts that any node raised, in any of its lives; nothing if alerts are not judged.
    pub alerts: Option<BTreeSet<Alert>>,
    /// How the run ended.
    pub end: End,
}

/// What there is once the faults have stopped and all work had its time to settle.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// What the API says of each acknowledged task.
    pub kept: BTreeMap<String, Kept>,
    /// The ids that the API lists, by status (the dead letters' only).
    pub listed: BTreeMap<String, BTreeSet<String>>,
    /// How many tasks each node counts, by status.
    pub counts: BTreeMap<String, Counts>,
    /// The fencing token of every claim that was settled, by task, as the database has them: attempt number and token.
    pub tokens: BTreeMap<String, Vec<(u32, u64)>>,
    /// The tenants of everything in the database.
    pub tenants: BTreeSet<String>,
    /// When it was looked at.
    pub at: u64,
}

/// The answer to a submission.
#[derive(Debug, Clone)]
pub struct Answer {
    /// When it was there.
    pub at: u64,
    /// The key that was submitted.
    pub key: String,
    /// Which of the requests under that key.
    pub variant: usize,
    /// What it said.
    pub said: Said,
}

/// What a submission was answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// 201: this task is new.
    Created(String),
    /// 200: it is this task, which was there.
    Known(String),
    /// 422: the key belongs to this task, whose request was another.
    Reused(String),
}

impl Said {
    /// The task, if the submission was acknowledged.
    pub fn acknowledged(&self) -> Option<&str> {
        match self {
            Said::Created(task) | Said::Known(task) => Some(task),
            Said::Reused(_) => None,
        }
    }

    /// The task, whatever was said of it.
    pub fn task(&self) -> &str {
        let (Said::Created(task) | Said::Known(task) | Said::Reused(task)) = self;
        task
    }
}

/// What the API said about a task at some moment.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// When its answer was there.
    pub at: u64,
    /// The task's id.
    pub id: String,
    /// The task; `None` if the API does not know it (any more).
    pub task: Option<Task>,
    /// What the caller had asked for.
    pub by: Deed,
}

/// What a caller did, and was told that it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Submitted it, or looked at it.
    Look,
    /// Took it back.
    Cancel,
    /// Brought it forward.
    RetryNow,
    /// Put it back to work.
    Replay,
}

/// A task at the end.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The task.
    pub task: Task,
    /// Its attempt log.
    pub attempts: Vec<Attempt>,
}

/// Something that was broken.
#[derive(Debug, Clone)]
pub struct Fault {
    /// When.
    pub at: u64,
    /// Of which kind.
    pub kind: FaultKind,
    /// To whom, and what exactly.
    pub what: String,
}

/// Kinds of faults, as they are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// A node was killed (SIGKILL).
    Kill,
    /// A node stood still (SIGSTOP, SIGCONT).
    Pause,
    /// A node was stopped as it should be (SIGTERM).
    Stop,
    /// PostgreSQL was killed, or stopped at once, and started again.
    ServerRestart,
    /// PostgreSQL stood still.
    ServerPause,
    /// PostgreSQL took no writes.
    ReadOnly,
    /// PostgreSQL's commits waited for a standby that was not there.
    StandbyLost,
    /// PostgreSQL was killed for good, and its standby promoted.
    Failover,
    /// A row was damaged.
    BadRow,
    /// The directory of large bodies was swapped for an empty one.
    Unmount,
    /// A node's clock was set.
    Clock,
    /// A node's connections to PostgreSQL were cut.
    Cut,
    /// The same, after answers or requests on them had been lost.
    Loss,
    /// The schedule in Redis was emptied, or Redis was killed.
    ScheduleLost,
    /// Redis answered late.
    ScheduleSlow,
    /// A node was replaced by one of the new program.
    Upgrade,
}

/// A node stood still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Its name.
    pub node: String,
    /// From when.
    pub from: u64,
    /// Until it was let go on.
    pub until: u64,
}

impl History {
    /// The arrivals of each task, in the order of arrival.
    pub fn arrivals_by_task(&self) -> BTreeMap<&str, Vec<&Arrival>> {
        let mut by_task: BTreeMap<&str, Vec<&Arrival>> = BTreeMap::new();
        for arrival in &self.arrivals {
            by_task.entry(&arrival.task).or_default().push(arrival);
        }
        by_task
    }

    /// The ids of all acknowledged tasks.
    pub fn acknowledged_tasks(&self) -> BTreeSet<&str> {
        self.answers.iter().filter_map(|answer| answer.said.acknowledged()).collect()
    }

    /// How many faults of this kind there were.
    pub fn count(&self, kind: FaultKind) -> usize {
        self.faults.iter().filter(|fault| fault.kind == kind).count()
    }
}

/// A history that callers, target and faults write to together.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<History>);

impl Ledger {
    /// The history, to add a line to. Hold it briefly.
    pub fn write(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what the API said about a task just now.
    pub fn saw(&self, task: Task, by: Deed) {
        let sighting = Sighting { at: now_us(), id: task.task_id.clone(), task: Some(task), by };
        self.write().sightings.push(sighting);
    }

    /// Writes down that the API does not know a task.
    pub fn missed(&self, id: &str) {
        self.write().sightings.push(Sighting { at: now_us(), id: id.to_owned(), task: None, by: Deed::Look });
    }

    /// Writes down a fault that has just taken effect.
    pub fn broke(&self, kind: FaultKind, what: String) {
        self.write().faults.push(Fault { at: now_us(), kind, what });
    }
}
