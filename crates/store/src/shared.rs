//! What a store that several processes use can do besides: tell them of one another, and keep what must hold across them.
//!
//! A store with one owner has none of this ([`Store::shared`](crate::Store::shared) is `None`), and everything works
//! without it: what is said here wakes others up sooner or spares the database a question, and is never the truth.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redrive_core::{Class, Lane, TaskId, TenantId, Timestamp};

use crate::{ClaimedTask, Error, LaneDue, LeaseTerms, PlaceId, Token};

/// What several processes over one store have in common.
#[async_trait]
pub trait Shared: Send + Sync + 'static {
    /// What other processes announced. Waits until there is something; what was announced while this process did not listen
    /// is lost, and found by a look at the store.
    async fn next_news(&self) -> Vec<News>;

    /// Whether something may have become due since the last call, or since this process began, that no live process knows of
    /// or that this one was not told: news was lost, or another process has gone with what only it knew. What it costs does
    /// not grow with the work that waits. A process that is told so reads all [lanes](crate::Store::pending_lanes).
    async fn may_have_missed(&self, _now: Timestamp) -> Result<bool, Error> {
        Ok(true)
    }

    /// Says that this process lives, and what it is doing.
    async fn heartbeat(&self, beat: Heartbeat, now: Timestamp) -> Result<(), Error>;

    /// What time it is by the store's own clock, to the millisecond. All processes over one store work on this time, whatever
    /// the clocks of their machines show.
    async fn time(&self) -> Result<Timestamp, Error>;

    /// Says that this process has stopped and holds nothing.
    async fn leave(&self) -> Result<(), Error>;

    /// Every process that has been heard of and has not left, in the order of their names, with the leases that each
    /// holds. One that died stays until somebody has taken over all of its leases and [`FORGOTTEN_AFTER`] has passed.
    async fn nodes(&self) -> Result<Vec<Node>, Error>;

    /// Takes these very tasks, as [`claim`](crate::Store::claim) would have: those that are pending, due by `due_by` and of
    /// this token. What is not any more is left out. For an index that is kept elsewhere: the store has the last word.
    async fn claim_known(&self, request: ClaimKnownRequest) -> Result<Vec<ClaimedTask>, Error>;

    /// Pending tasks in the order of tenant and id, after `after`, at most `limit`: for filling such an index.
    async fn waiting(&self, after: Option<(TenantId, TaskId)>, limit: usize) -> Result<Vec<PendingTask>, Error>;

    /// The place that stored bodies are kept in: `mine` if none was recorded before, and it is recorded then, once and for
    /// all processes. One that uses another place would look for bodies where they are not.
    async fn body_place(&self, mine: Option<PlaceId>) -> Result<Option<PlaceId>, Error>;

    /// Where what the guards of all processes count is added up.
    fn guards(&self) -> &dyn Guards;
}

/// How long a process that died without leaving is still listed.
pub const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

/// The name of a running process: given by whoever runs it, or made at its start; never the same for two at once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(Arc<str>);

impl NodeId {
    /// The most characters of a name.
    pub const LIMIT: usize = 100;

    /// The node with this name: 1 to [`LIMIT`](Self::LIMIT) letters, digits, '.', '_', '-' and ':'.
    pub fn try_new(name: &str) -> Result<Self, InvalidNodeId> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
        match name {
            "" => Err(InvalidNodeId),
            _ if name.len() > Self::LIMIT || !name.chars().all(is_allowed) => Err(InvalidNodeId),
            _ => Ok(NodeId(name.into())),
        }
    }

    /// The only process over a store of its own.
    pub fn this() -> Self {
        NodeId("this".into())
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that cannot be the name of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {} letters, digits, '.', '_', '-' and ':'", NodeId::LIMIT)]
pub struct InvalidNodeId;

/// What a process says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// When it started.
    pub started_at: Timestamp,
    /// The program's version.
    pub version: String,
    /// Where its API listens.
    pub address: String,
    /// Attempts under way.
    pub in_flight: u64,
    /// Whether it has begun to stop.
    pub is_draining: bool,
    /// Whether it takes work. One that does not leaves what only it knows to the others.
    pub claims: bool,
    /// By how many milliseconds its machine's clock is ahead of the time that it works on.
    pub clock_ahead_ms: i64,
    /// How often it says so: who is silent for several times as long is taken for dead.
    pub every: Duration,
}

/// A process that has been heard of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub id: NodeId,
    /// What it said last.
    pub beat: Heartbeat,
    /// When it said so.
    pub seen_at: Timestamp,
    /// The leases that it holds, by the store's own count.
    pub leases: u64,
}

/// What a process announces to the others over the same store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// Something is due in this class of a lane that the announcing process will not claim itself.
    Due(LaneDue),
    /// A cancel of this task was committed while an attempt of it was in flight.
    CancelRequested(TenantId, TaskId),
}

/// A request for tasks that are known by their ids.
#[derive(Debug, Clone)]
pub struct ClaimKnownRequest {
    /// Which tasks.
    pub known: Vec<KnownTask>,
    /// Only tasks that are due by then.
    pub due_by: Timestamp,
    /// How long the leases last, as for [`ClaimRequest`](crate::ClaimRequest).
    pub lease: LeaseTerms,
    /// The present moment.
    pub now: Timestamp,
}

/// A pending task that somebody knows of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTask {
    /// Whose task.
    pub tenant: TenantId,
    /// Which task.
    pub id: TaskId,
    /// The token of its last claim, zero before the first: another one means that what is known is out of date.
    pub token: Token,
    /// Whether a slot is reserved for it. Without one it is left out if its next attempt is its last, and so is what comes
    /// after it in the same class of its lane without a slot: the order of due times is kept.
    pub has_slot: bool,
}

/// A pending task, as an index needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingTask {
    /// Its lane.
    pub lane: Lane,
    /// Its class in that lane.
    pub class: Class,
    /// Which task.
    pub id: TaskId,
    /// The token of its last claim, zero before the first.
    pub token: Token,
    /// When it is due.
    pub due: Timestamp,
}

/// Adds up what the guards of all processes count, lane by lane.
///
/// Each process says every now and then what it counted since it last said so, and learns what all of them did. Between
/// two such moments it knows only its own. So a limit of `L` in a window may be exceeded by what the other processes
/// have counted and not yet said: with `n` processes that each say so after at most `s` counts, by `(n − 1) · s`.
#[async_trait]
pub trait Guards: Send + Sync {
    /// Adds these tallies and answers, for each of them in order, the sum over all processes of the lane's seconds from
    /// `since` on (the tally's own second included). Saying something twice counts it twice.
    async fn tally(&self, tallies: Vec<Tally>, since: Timestamp) -> Result<Vec<Totals>, Error>;

    /// Holds lanes back until a time, for all processes: the latest time that anybody said stands. Answers, for each in
    /// order, what stands now.
    async fn hold(&self, holds: Vec<Hold>) -> Result<Vec<Timestamp>, Error>;

    /// The lanes that are held back at `now`, at most `limit`, the one that is held longest first.
    async fn held(&self, now: Timestamp, limit: usize) -> Result<Vec<Hold>, Error>;
}

/// What one process counted of a lane within one second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// The lane.
    pub lane: Lane,
    /// When; its whole second counts.
    pub at: Timestamp,
    /// What was counted.
    pub counted: Totals,
}

/// Numbers of sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// First attempts.
    pub first: u64,
    /// Retries: later attempts, and what is sent again after a crash.
    pub retries: u64,
    /// Attempts that failed in a way that speaks against the dependency.
    pub failures: u64,
}

/// A lane that is held back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The lane.
    pub lane: Lane,
    /// Until when.
    pub until: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nodes_name_is_short_and_plain() {
        for name in ["a", "node-1.eu:8620", &"n".repeat(100)] {
            assert_eq!(NodeId::try_new(name).unwrap().as_str(), name);
        }
        for name in ["", "a b", "n/1", "é", &"n".repeat(101)] {
            assert_eq!(NodeId::try_new(name), Err(InvalidNodeId), "{name:?}");
        }
    }
}
