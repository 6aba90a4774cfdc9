//! What the model remembers of items and tasks.

use redrive_core::{Outcome, Reason, Status, Timestamp};

use crate::moment::Moment;
use crate::plan::Item;

/// A process: a node, and how often it has been started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Whose {
    /// The node.
    pub node: usize,
    /// Which of its lives.
    pub life: u32,
}

/// What a client asks of a task that may change its fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// To take it back.
    Cancel,
    /// To have it tried now.
    BringForward,
    /// To put it back to work.
    Replay,
}

/// One send, from its connection on.
#[derive(Debug, Clone)]
pub struct Departure {
    /// Who sent it.
    pub whose: Whose,
    /// What it carried as `Redrive-Attempt`.
    pub attempt: u32,
    /// When it began to connect.
    pub at: Moment,
    /// When its first byte left.
    pub left: Option<Moment>,
    /// When the process was through with it, one way or another.
    pub over: Option<Moment>,
    /// What the dependency was heard to say.
    pub said: Option<Said>,
    /// What the attempt log says of it.
    pub logged: Option<Outcome>,
}

impl Departure {
    /// Whether it was an attempt: a byte left, or the dependency was not to be reached.
    pub fn counts(&self) -> bool {
        self.left.is_some() || self.said.is_some()
    }
}

/// What a dependency says, judged by the standard's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Said {
    /// It has accepted.
    Yes,
    /// It may accept later, not before this moment.
    Later(Moment),
    /// It asks for fewer requests, not before this moment if it says when.
    TooMany(Option<Moment>),
    /// Its name was not found: that is tried twice at most.
    NoSuchName,
    /// It will never accept.
    Never,
}

/// An item, and what has been asked of it.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) item: Item,
    pub(super) first_asked: Option<Moment>,
    /// How many submissions of it are or were under way.
    pub(super) asked: usize,
    /// The same, for the other request under its key.
    pub(super) asked_other: usize,
}

impl Wanted {
    pub(super) fn new(item: Item) -> Self {
        Wanted { item, first_asked: None, asked: 0, asked_other: 0 }
    }
}

/// What is known of a task.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) name: String,
    /// Whether it is the other request under the key.
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
    /// When it was last asked to be tried now; as long as such a call is under way, that is now.
    pub(super) brought_forward: Option<Moment>,
    pub(super) forwards_under_way: usize,
    pub(super) replays_asked: u32,
    /// Replays of which nobody knows whether they happened.
    pub(super) replays_unknown: u32,
    /// When a replay was last answered.
    pub(super) replayed: Option<Moment>,
    /// A due time that was shown, and when.
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

/// A task's end, as it was seen.
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
    /// The attempt that was under way; none if the task ended by the cancel.
    pub(super) under_way: Option<u32>,
}
