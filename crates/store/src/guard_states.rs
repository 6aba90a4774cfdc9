//! The guards of lanes: what is kept of them across a restart, and what operators have set.

use async_trait::async_trait;
use redrive_core::Lane;
use redrive_core::guards::{Controls, Snapshot};

use crate::Error;

/// Keeps the states of lanes' guards across a restart. Only a store with one owner has this: the processes over a shared
/// store have no state that one of them could restore.
#[async_trait]
pub trait GuardStates: Send + Sync {
    /// Takes states to be kept. They are written with the next commit of this store that changes something, and cause
    /// none of their own: a call that follows this one and succeeds has kept them too. A later state of a lane replaces
    /// an earlier one.
    fn keep(&self, states: Vec<GuardState>);

    /// The kept states in the order of their lanes after `after`, at most `limit`. A state that cannot be read is left
    /// out.
    async fn kept(&self, after: Option<Lane>, limit: usize) -> Result<Vec<GuardState>, Error>;
}

/// The state of a lane's guards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardState {
    /// The lane.
    pub lane: Lane,
    /// Its state; `None` if none is to be kept any more.
    pub state: Option<Snapshot>,
}

/// Stores what operators have set for lanes.
#[async_trait]
pub trait LaneControls: Send + Sync {
    /// Replaces the controls of a lane if they are `expected` (compare and set). Returns whether they were replaced: if not,
    /// another process has changed them, and nothing changes. Controls are compared by value. A lane without controls has
    /// empty ones, and empty controls are removed. Controls that cannot be read count as empty, so that a change can
    /// replace them; this is logged.
    async fn replace(&self, lane: Lane, expected: Controls, new: Controls) -> Result<bool, Error>;

    /// The controls that are set, in the order of their lanes after `after`, at most `limit`. Controls that cannot be read
    /// are left out.
    async fn list(&self, after: Option<Lane>, limit: usize) -> Result<Vec<(Lane, Controls)>, Error>;
}
