//! Errors of both drivers.

/// Why a call did nothing; `D` is the driver's own error.
///
/// PostgreSQL aborts a transaction in which a statement failed. To continue after one of these, make the call inside
/// a savepoint (a nested transaction).
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
    /// Another execution owns the record: this one was replaced after its lease had run out. Roll back.
    #[error("{message}")]
    Fenced {
        /// Names the record.
        message: String,
    },
    /// There is no such record: it has expired, or was given up.
    #[error("{message}")]
    UnknownRecord {
        /// Names the record.
        message: String,
    },
    /// The same execution has ended the record before, in another way.
    #[error("{message}")]
    AlreadyEnded {
        /// Names the record.
        message: String,
    },
    /// Another execution is handling the event: it has begun over the API and has not confirmed it.
    #[error("{message}")]
    EventInProgress {
        /// Names the event and the consumer.
        message: String,
    },
    /// The database's answer is not one that this program knows; the schema may be of a newer version.
    #[error("the database gave an answer that this program does not know: {0}")]
    UnknownAnswer(String),
    /// The database could not be reached, or failed. This includes a database without Redrive's schema.
    #[error("calling a function of Redrive in the database")]
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
            "RD003" => Error::Fenced { message },
            "RD004" => Error::UnknownRecord { message },
            "RD005" => Error::AlreadyEnded { message },
            "RD006" => Error::EventInProgress { message },
            _ => Error::Database(source),
        }
    }
}
