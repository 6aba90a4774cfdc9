//! A request as the target received it.

/// One request that the target received.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// When, in microseconds since the epoch.
    pub at: u64,
    /// `Redrive-Task-Id`.
    pub task: String,
    /// `Redrive-Attempt`; 0 if it is missing.
    pub attempt: u32,
    /// `Idempotency-Key`.
    pub key: String,
    /// Method and path.
    pub target: String,
    /// The hash of the body.
    pub body_hash: u64,
    /// The status of the answer; `None` if it got no complete answer.
    pub answered: Option<u16>,
}
