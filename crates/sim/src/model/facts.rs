//! The facts that the model keeps of items and tasks.

use redrive_core::{Outcome, Reason, Status, Timestamp};

use crate::moment::Moment;
use crate::plan::Item;

/// A process: a node, and how often it has been started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Whose {
    /// The node.
    pub node: usize,
    /// How often the node had been started: a restart is a new process.
    pub life: u32,
}

/// A client's request that may change a task's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// To cancel it.
    Cancel,
    /// To make it due now.
    BringForward,
    /// To replay it.
    Replay,
}

/// One send, from its connection on.
#[derive(Debug, Clone)]
pub struct Departure {
    /// The process that sent it.
    pub whose: Whose,
    /// Its `Redrive-Attempt` header.
    pub attempt: u32,
    /// When it began to connect.
    pub at: Moment,
    /// When its first byte was sent.
    pub left: Option<Moment>,
    /// When the process was done with it, with any result.
    pub over: Option<Moment>,
    /// The dependency's answer, as the process received it.
    pub said: Option<Said>,
    /// Its outcome in the attempt log.
    pub logged: Option<Outcome>,
}

impl Departure {
    /// Whether it counts as an attempt: a byte was sent, or the dependency could not be reached.
    pub fn counts(&self) -> bool {
        self.left.is_some() || self.said.is_some()
    }
}

/// The answer of a dependency, classified by the standard's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Said {
    /// Accepted.
    Yes,
    /// To be retried, not before this moment.
    Later(Moment),
    /// Overloaded: to be retried with fewer requests, not before this moment if the answer has one.
    TooMany(Option<Moment>),
    /// The name was not found: that is tried twice at most.
    NoSuchName,
    /// Never to be retried.
    Never,
}

/// An item, and the requests for it.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) item: Item,
    pub(super) first_asked: Option<Moment>,
    /// How many submissions of it are or were in progress.
    pub(super) asked: usize,
    /// How many submissions of the other request under its key are or were in progress.
    pub(super) asked_other: usize,
}

impl Wanted {
    pub(super) fn new(item: Item) -> Self {
        Wanted { item, first_asked: None, asked: 0, asked_other: 0 }
    }
}

/// The facts of one task.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) name: String,
    /// Whether the task is the other request under the key.
    pub(super) is_other: bool,
    pub(super) key: String,
    /// When it was first acknowledged.
    pub(super) acknowledged: Option<Moment>,
    pub(super) acknowledged_as_new: bool,
    pub(super) created_at: Timestamp,
    /// The deadline of its latest run; unknown while a replay may or may not have happened.
    pub(super) deadline_at: Option<Timestamp>,
    /// Attempts of earlier runs.
    pub(super) attempts_before: u32,
    pub(super) sends: Vec<Departure>,
    pub(super) end: Option<End>,
    pub(super) cancel_asked: bool,
    pub(super) cancelled: Option<CancelAnswer>,
    /// When it was last requested to be due now; while such a call is in progress, that is now.
    pub(super) brought_forward: Option<Moment>,
    pub(super) forwards_under_way: usize,
    pub(super) replays_asked: u32,
    /// Replays whose effect is unknown.
    pub(super) replays_unknown: u32,
    /// When a replay was last answered.
    pub(super) replayed: Option<Moment>,
    /// A due time that a read returned, and when.
    pub(super) due_shown: Option<(Timestamp, Moment)>,
}

impl Facts {
    /// Whether no replay can have begun another run since this send.
    pub(super) fn is_of_this_run(&self, send: &Departure) -> bool {
        self.replays_unknown == 0
            && send.attempt > self.attempts_before
            && self.replayed.is_none_or(|replayed| replayed < send.at)
    }
}

/// A task's end, as a read returned it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct End {
    pub(super) status: Status,
    pub(super) reason: Option<Reason>,
    pub(super) at: Timestamp,
    pub(super) seen: Moment,
}

/// The answer to a cancel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CancelAnswer {
    pub(super) at: Moment,
    pub(super) by: Whose,
    /// The attempt that was in flight; `None` if the cancel ended the task.
    pub(super) under_way: Option<u32>,
}
