//! The errors of store calls.

/// Why a call failed. The call changed nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// There is no space left. Calls work again once there is.
    #[error("the store has no space left: {0}")]
    Full(String),
    /// The store cannot be reached or used at the moment.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Stored data cannot be read.
    #[error("the store holds what it should not: {0}")]
    Corrupt(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}
