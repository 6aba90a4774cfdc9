//! The additional calls of a store that several processes use: news and heartbeats between them. The guards that they
//! share are in [`SharedGuards`].
//!
//! A store with one owner has none of this ([`Store::shared`](crate::Store::shared) is `None`), and everything works
//! without it. News wakes other processes up sooner or saves a database query; the tasks in the store decide.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redrive_core::{Class, Lane, TaskId, TenantId, Timestamp};

use crate::{BlobStorageId, ClaimedTask, Error, LaneDue, LeaseTerms, SharedGuards, Token};

/// What several processes over one store share.
#[async_trait]
pub trait SharedStore: Send + Sync + 'static {
    /// Waits for the next announcements of other processes. What was announced while this process did not listen is
    /// lost, and found by reading the store.
    async fn next_news(&self) -> Vec<News>;

    /// Whether a task may have become due, since the last call or since this process started, that this process has not
    /// been notified of and that no running process will claim: news was lost, or another process has stopped. The cost
    /// does not grow with the number of pending tasks. After `true`, the process reads all
    /// [lanes](crate::Upkeep::pending_lanes).
    async fn may_have_missed(&self, _now: Timestamp) -> Result<bool, Error> {
        Ok(true)
    }

    /// Records that this process is running, and its state.
    async fn heartbeat(&self, beat: Heartbeat, now: Timestamp) -> Result<(), Error>;

    /// The current time of the store's own clock, to the millisecond. All processes over one store work with this time,
    /// whatever the clocks of their machines show.
    async fn time(&self) -> Result<Timestamp, Error>;

    /// Records that this process has stopped and holds no lease.
    async fn leave(&self) -> Result<(), Error>;

    /// Every process that has sent a heartbeat and has not left, in the order of their names, with the leases that each
    /// holds. A process that died stays until all of its leases have been taken over and [`FORGOTTEN_AFTER`] has
    /// passed.
    async fn nodes(&self) -> Result<Vec<Node>, Error>;

    /// Claims exactly these tasks, as [`claim`](crate::Tasks::claim) would have: those that are pending, due by
    /// `due_by` and of this token. The others are left out. For an index that is kept elsewhere: the store decides.
    async fn claim_known(&self, request: ClaimKnownRequest) -> Result<Vec<ClaimedTask>, Error>;

    /// Pending tasks in the order of tenant and id, after `after`, at most `limit`. Used to fill such an index.
    async fn waiting(&self, after: Option<(TenantId, TaskId)>, limit: usize) -> Result<Vec<PendingTask>, Error>;

    /// The blob storage that has the bodies. If none is recorded, `mine` is recorded, once and for all processes. A
    /// process that uses another storage would not find the bodies.
    async fn blob_storage_id(&self, mine: Option<BlobStorageId>) -> Result<Option<BlobStorageId>, Error>;

    /// The guards that all processes share.
    fn guards(&self) -> &dyn SharedGuards;
}

/// How long a process that died without leaving stays listed.
pub const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

/// The name of a running process: configured, or made at its start. No two running processes have the same name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(Arc<str>);

impl NodeId {
    /// The most characters in a name.
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

    /// The name of the only process over a store of its own.
    pub fn this() -> Self {
        NodeId("this".into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is not a valid node name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {} letters, digits, '.', '_', '-' and ':'", NodeId::LIMIT)]
pub struct InvalidNodeId;

/// The state that a process reports of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// When the process started.
    pub started_at: Timestamp,
    /// The program's version.
    pub version: String,
    /// The address on which its API listens.
    pub address: String,
    /// The number of attempts under way.
    pub in_flight: u64,
    /// Whether it has begun to stop.
    pub is_draining: bool,
    /// Whether it claims tasks. If it does not, the other processes must find the tasks that only it has news of.
    pub claims: bool,
    /// By how many milliseconds its machine's clock is ahead of the time that it works with.
    pub clock_ahead_ms: i64,
    /// The interval of its heartbeats: a process that is silent for several times as long counts as dead.
    pub every: Duration,
}

/// A process that has sent a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The process's name.
    pub id: NodeId,
    /// Its last heartbeat.
    pub beat: Heartbeat,
    /// When its last heartbeat was recorded.
    pub seen_at: Timestamp,
    /// The number of leases that it holds, counted in the store.
    pub leases: u64,
}

/// An announcement of a process to the others over the same store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A task is due in this class of a lane, and the announcing process will not claim it itself.
    Due(LaneDue),
    /// A cancel of this task was committed while an attempt of it was in flight.
    CancelRequested(TenantId, TaskId),
    /// The shared guards of this lane changed, or what operators have set for it.
    GuardsChanged(Lane),
}

/// A request for tasks whose ids are known.
#[derive(Debug, Clone)]
pub struct ClaimKnownRequest {
    /// The tasks.
    pub known: Vec<KnownTask>,
    /// Only tasks that are due by this time.
    pub due_by: Timestamp,
    /// How long the leases last, as for [`ClaimRequest`](crate::ClaimRequest).
    pub lease: LeaseTerms,
    /// The present moment.
    pub now: Timestamp,
}

/// A pending task that an index outside of the store holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTask {
    /// The task's tenant.
    pub tenant: TenantId,
    /// The task's id.
    pub id: TaskId,
    /// The token of its last claim, zero before the first: if the store has another one, the index is out of date.
    pub token: Token,
    /// Whether a slot is reserved for it. Without a slot, a task whose next attempt is its last is left out. So is
    /// every later task of the same class and lane that has no slot, to keep the order of due times.
    pub has_slot: bool,
}

/// A pending task with the fields that an index needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingTask {
    /// Its lane.
    pub lane: Lane,
    /// Its class in that lane.
    pub class: Class,
    /// The task's id.
    pub id: TaskId,
    /// The token of its last claim, zero before the first.
    pub token: Token,
    /// When it is due.
    pub due: Timestamp,
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
