//! What a call of the store can fail with.

/// Why a call failed. Nothing of it happened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// There is no space left; calls work again once there is.
    #[error("the store has no space left: {0}")]
    Full(String),
    /// The store cannot be reached or used right now.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// What is stored cannot be read.
    #[error("the store holds what it should not: {0}")]
    Corrupt(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}
