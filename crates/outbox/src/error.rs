//! Errors of enqueueing.

/// Why nothing was enqueued; `D` is the driver's own error.
///
/// PostgreSQL aborts a transaction in which a statement failed. To continue after one of these, enqueue inside a
/// savepoint (a nested transaction).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error<D: std::error::Error + 'static> {
    /// A value is invalid; the message names it.
    #[error("{0}")]
    InvalidArgument(String),
    /// The idempotency key belongs to another request.
    #[error("{message}")]
    KeyReused {
        /// Names the key and its task.
        message: String,
    },
    /// There is no such policy.
    #[error("{message}")]
    UnknownPolicy {
        /// Names the policy and the tenant.
        message: String,
    },
    /// The database could not be reached, or failed. This includes a database without Redrive's schema.
    #[error("enqueueing a task in the database")]
    Database(#[source] D),
}

#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
impl<D: std::error::Error + 'static> Error<D> {
    /// The error for the server's SQLSTATE and message.
    pub(crate) fn told(state: &str, message: String, source: D) -> Self {
        match state {
            // A value that PostgreSQL cannot represent, such as a NUL in a text, is invalid as well.
            "22023" | "22021" | "22P05" => Error::InvalidArgument(message),
            "RD001" => Error::KeyReused { message },
            "RD002" => Error::UnknownPolicy { message },
            _ => Error::Database(source),
        }
    }
}
