//! The ledger of a chaos run: what is visible from outside about every task and every fault.
//!
//! It is in this process's memory, so no fault can affect it. Times are microseconds since the epoch, on the clock that
//! all processes of this machine share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::{Attempt, Counts, Task};
use crate::clock::now_us;
use crate::witness::{Alert, Arrival, RequestedTask};

/// Everything that happened, as input of the rules.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// How much longer than an attempt's timeout its lease lasts, in milliseconds.
    pub lease_margin_ms: u64,
    /// The requests of callers, by idempotency key: one request, or several that compete for the key.
    pub requested: BTreeMap<String, Vec<RequestedTask>>,
    /// Every submission with a final answer.
    pub answers: Vec<Answer>,
    /// Every request that the target received, in order.
    pub arrivals: Vec<Arrival>,
    /// Everything that the API returned about a task during the run.
    pub sightings: Vec<Sighting>,
    /// Entries of the attempt log that the API returned during the run, by task and number.
    pub lines_seen: BTreeMap<(String, u32), Attempt>,
    /// When a caller began to request a task's replay, with any result, by task.
    pub replays_asked: BTreeMap<String, Vec<u64>>,
    /// Every fault.
    pub faults: Vec<Fault>,
    /// How often the submission of a large body was answered 503.
    pub large_refused: u64,
    /// The suspensions of each node.
    pub pauses: Vec<Pause>,
    /// Nodes that ended although no fault had ended them, with their logs.
    pub deaths: Vec<String>,
    /// The alerts of all nodes, over all restarts; `None` if alerts are not judged.
    pub alerts: Option<BTreeSet<Alert>>,
    /// The final state.
    pub end: End,
}

/// The final state: after the faults are over and all work had time to settle.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// Each acknowledged task, from the API.
    pub kept: BTreeMap<String, Kept>,
    /// The ids that the API lists, by status (the dead letters' only).
    pub listed: BTreeMap<String, BTreeSet<String>>,
    /// How many tasks each node counts, by status.
    pub counts: BTreeMap<String, Counts>,
    /// The fencing token of every claim that was settled, by task, from the database: attempt number and token.
    pub tokens: BTreeMap<String, Vec<(u32, u64)>>,
    /// The tenants of all rows in the database.
    pub tenants: BTreeSet<String>,
    /// When the state was read.
    pub at: u64,
}

/// The answer to a submission.
#[derive(Debug, Clone)]
pub struct Answer {
    /// When it was received.
    pub at: u64,
    /// The key that was submitted.
    pub key: String,
    /// The number of the request among those under that key.
    pub variant: usize,
    /// The result.
    pub said: Said,
}

/// The result of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// 201: this task is new.
    Created(String),
    /// 200: it is this existing task.
    Known(String),
    /// 422: the key belongs to this task, which has another request.
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

    /// The task that the answer names.
    pub fn task(&self) -> &str {
        let (Said::Created(task) | Said::Known(task) | Said::Reused(task)) = self;
        task
    }
}

/// What the API returned about a task at some moment.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// When the answer was received.
    pub at: u64,
    /// The task's id.
    pub id: String,
    /// The task; `None` if the API has no such task (any more).
    pub task: Option<Task>,
    /// The caller's request.
    pub by: Deed,
}

/// A caller's request that was answered with success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Submitted or read the task.
    Look,
    /// Cancelled it.
    Cancel,
    /// Brought it forward.
    RetryNow,
    /// Replayed it.
    Replay,
}

/// The final state of a task.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The task.
    pub task: Task,
    /// Its attempt log.
    pub attempts: Vec<Attempt>,
}

/// A fault that took effect.
#[derive(Debug, Clone)]
pub struct Fault {
    /// When.
    pub at: u64,
    /// Its kind.
    pub kind: FaultKind,
    /// What was affected, in words.
    pub what: String,
}

/// Kinds of faults, for the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// A node was killed (SIGKILL).
    Kill,
    /// A node was suspended (SIGSTOP, SIGCONT).
    Pause,
    /// A node was stopped gracefully (SIGTERM).
    Stop,
    /// PostgreSQL was killed, or stopped immediately, and restarted.
    ServerRestart,
    /// PostgreSQL was suspended.
    ServerPause,
    /// PostgreSQL took no writes.
    ReadOnly,
    /// PostgreSQL's commits waited for a standby that did not exist.
    StandbyLost,
    /// PostgreSQL was killed for good, and its standby promoted.
    Failover,
    /// A row was damaged.
    BadRow,
    /// The directory of large bodies was replaced by an empty one.
    Unmount,
    /// A node's clock was set.
    Clock,
    /// A node's connections to PostgreSQL were closed.
    Cut,
    /// A node's connections to PostgreSQL were closed after answers or requests on them had been lost.
    Loss,
    /// The schedule in Redis was emptied, or Redis was killed.
    ScheduleLost,
    /// Redis answered late.
    ScheduleSlow,
    /// A node was replaced by one with the new program.
    Upgrade,
}

/// A suspension of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Its name.
    pub node: String,
    /// When it began.
    pub from: u64,
    /// When the node was resumed.
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

/// A history that callers, target and faults write to concurrently.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<History>);

impl Ledger {
    /// The history, for a change. Hold the lock briefly.
    pub fn write(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what the API has just returned about a task.
    pub fn saw(&self, task: Task, by: Deed) {
        let sighting = Sighting { at: now_us(), id: task.task_id.clone(), task: Some(task), by };
        self.write().sightings.push(sighting);
    }

    /// Records that the API has no such task.
    pub fn missed(&self, id: &str) {
        self.write().sightings.push(Sighting { at: now_us(), id: id.to_owned(), task: None, by: Deed::Look });
    }

    /// Records a fault that has just taken effect.
    pub fn broke(&self, kind: FaultKind, what: String) {
        self.write().faults.push(Fault { at: now_us(), kind, what });
    }
}
