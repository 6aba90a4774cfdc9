//! A request as the target saw it.

/// One request that the target read.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// When, in microseconds since the epoch.
    pub at: u64,
    /// `Redrive-Task-Id`.
    pub task: String,
    /// `Redrive-Attempt`; 0 if it is not there.
    pub attempt: u32,
    /// `Idempotency-Key`.
    pub key: String,
    /// Method and path.
    pub target: String,
    /// The body.
    pub body_hash: u64,
    /// The status that it was answered with; `None` if it was given no complete answer.
    pub answered: Option<u16>,
}
