//! The guards that all processes over one store share: a versioned state for each lane, and for each origin.
//!
//! A store keeps these states and does not look into them. What they mean, and how they change, is decided by
//! `redrive_core::guards::shared`. A process reads states, computes what follows, and replaces those that no other process
//! has changed meanwhile (compare and set). So no lock is held while a process computes, or while it is stopped.

use async_trait::async_trait;
use redrive_core::{Lane, TenantId, Timestamp};

use crate::Error;

/// The states of guards that all processes over one store share.
#[async_trait]
pub trait SharedGuards: Send + Sync {
    /// The states of these keys, in order; `None` where there is none.
    async fn read(&self, keys: Vec<GuardKey>) -> Result<Vec<Option<VersionedState>>, Error>;

    /// Replaces each state whose version is the expected one. Returns for each, in order, its new version, or `None` if
    /// it was not replaced because another process changed it. No two changes have the same key. An error leaves
    /// unknown what was replaced.
    ///
    /// A change that [is announced](StateChange::is_announced) becomes [`News::GuardsChanged`](crate::News) for the
    /// other processes.
    async fn replace(&self, changes: Vec<StateChange>) -> Result<Vec<Option<u64>>, Error>;

    /// The lanes whose breaker is not closed, in the order of their names after `after`, at most `limit`.
    async fn not_closed(&self, after: Option<Lane>, limit: usize) -> Result<Vec<(Lane, VersionedState)>, Error>;

    /// Deletes states that expired before `now`, at most `limit`. Returns how many. A state that is being replaced is
    /// left for the next call.
    async fn clean(&self, now: Timestamp, limit: usize) -> Result<usize, Error>;
}

/// What a state belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GuardKey {
    /// The guards of one lane.
    Lane(Lane),
    /// The floor of retries that the lanes of one tenant and origin share.
    Origin(TenantId, String),
}

/// A state, and the number that grows whenever it is replaced. A key never has the same version twice, also after its
/// state was deleted and made again: a process that was stopped meanwhile must not replace a state that it has not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionedState {
    /// The version, at least 1.
    pub version: u64,
    /// The state, as text.
    pub state: String,
}

/// The replacement of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateChange {
    /// What it belongs to.
    pub key: GuardKey,
    /// The version that is replaced; `None` if there was no state.
    pub expected: Option<u64>,
    /// The new state.
    pub state: String,
    /// Whether the lane's breaker is closed in it. Always so for an origin.
    pub is_closed: bool,
    /// Whether the other processes are told of it at once.
    pub is_announced: bool,
    /// When it may be deleted.
    pub expires_at: Timestamp,
}
