//! Why nothing was enqueued.

/// Why nothing was enqueued; `D` is the driver's own error.
///
/// PostgreSQL aborts a transaction in which a statement failed: whoever wants to go on after one of these enqueues inside
/// a savepoint (a transaction in the transaction).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error<D: std::error::Error + 'static> {
    /// A value that makes no sense; the message names it.
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
    /// The database could not be asked, or failed. Among others: Redrive's schema is not in this database.
    #[error("enqueueing a task in the database")]
    Database(#[source] D),
}

#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
impl<D: std::error::Error + 'static> Error<D> {
    /// The error that the server's SQLSTATE and message stand for.
    pub(crate) fn told(state: &str, message: String, source: D) -> Self {
        match state {
            // What cannot be written in PostgreSQL, such as a NUL in a text, makes no sense either.
            "22023" | "22021" | "22P05" => Error::InvalidArgument(message),
            "RD001" => Error::KeyReused { message },
            "RD002" => Error::UnknownPolicy { message },
            _ => Error::Database(source),
        }
    }
}
