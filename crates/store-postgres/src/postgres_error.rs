//! Failures of calls to PostgreSQL, and their classification.

use redrive_store::Error;
use tokio_postgres::error::SqlState;

use crate::connect::ConnectError;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PostgresError {
    /// PostgreSQL returned an error, or the connection was lost.
    #[error("{}", describe_error(.0))]
    Postgres(#[from] tokio_postgres::Error),
    /// No answer came within the call timeout.
    #[error("no answer from PostgreSQL within {0:?}")]
    TimedOut(std::time::Duration),
    /// No connection became free in time, and nothing was sent.
    #[error("no connection to PostgreSQL became free within {0:?}: all of them wait for its answers")]
    Busy(std::time::Duration),
    /// No connection could be made.
    #[error("connecting to PostgreSQL: {0}")]
    Unreachable(#[from] ConnectError),
    /// A part of the call was committed before the failure.
    #[error("{0}")]
    Halfway(Box<PostgresError>),
    /// The role may not change objects of the schema that do not belong to the schema's owner.
    #[error("{failure}; {advice}")]
    OtherOwners { failure: Box<PostgresError>, advice: String },
    /// A stored value that this program cannot have written.
    #[error("{0}")]
    Corrupt(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl PostgresError {
    /// A failure about a value that cannot be read, and where it is stored.
    pub(crate) fn corrupt(place: impl std::fmt::Display, what: impl std::fmt::Display) -> Self {
        PostgresError::Corrupt(format!("{place}: {what}"))
    }

    /// Whether an immediate retry may succeed: two transactions were in conflict, and this one was rolled back. (A key
    /// that another transaction has just taken is visible to the retry.)
    pub(crate) fn is_conflict(&self) -> bool {
        let conflicts =
            [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE, SqlState::UNIQUE_VIOLATION];
        self.code().is_some_and(|code| conflicts.contains(code))
    }

    /// Whether it is unknown if the call was committed: the connection ended, or was given up, before the answer.
    pub(crate) fn is_in_doubt(&self) -> bool {
        match self {
            PostgresError::Postgres(error) => error.code().is_none_or(|code| {
                // The server sends these before it closes the connection. The cancelled statement may have been the
                // second one of a call whose first one is committed.
                [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::QUERY_CANCELED].contains(code)
            }),
            PostgresError::TimedOut(_) => true,
            PostgresError::Halfway(_) => !self.is_conflict() && !self.is_refusal(),
            PostgresError::Busy(_)
            | PostgresError::Unreachable(_)
            | PostgresError::OtherOwners { .. }
            | PostgresError::Corrupt(_)
            | PostgresError::Closed => false,
        }
    }

    /// Whether the connection ended before the answer.
    pub(crate) fn is_lost_connection(&self) -> bool {
        match self {
            PostgresError::Postgres(error) => error.is_closed() || self.is_in_doubt() && !self.is_cancelled(),
            _ => false,
        }
    }

    /// Whether the server refused to write, and the call changed nothing: it is a replica, or read-only.
    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            PostgresError::Postgres(_) => self.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION),
            _ => false,
        }
    }

    /// Whether the connection cannot be used by the next call either: its server is read-only, or about to close it.
    pub(crate) fn is_about_the_connection(&self) -> bool {
        const CODES: [SqlState; 4] = [
            SqlState::READ_ONLY_SQL_TRANSACTION,
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
        ];
        let is_lost = |code: &SqlState| code.code().starts_with("08");
        self.code().is_some_and(|code| CODES.contains(code) || is_lost(code))
    }

    fn is_cancelled(&self) -> bool {
        self.code() == Some(&SqlState::QUERY_CANCELED)
    }

    /// Wraps a failure that came after a part of the call was committed. A repeated call finds out which part.
    pub(crate) fn halfway(failure: PostgresError) -> Self {
        PostgresError::Halfway(Box::new(failure))
    }

    /// Whether the same call may succeed later, whatever its content.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            PostgresError::Postgres(_) => !self.is_refusal(),
            PostgresError::TimedOut(_) | PostgresError::Busy(_) | PostgresError::Unreachable(_) => true,
            PostgresError::Halfway(failure) => failure.is_passing(),
            PostgresError::OtherOwners { .. } | PostgresError::Corrupt(_) | PostgresError::Closed => false,
        }
    }

    /// Whether another transaction holds a lock that the call needs. That transaction may be the first try of the same
    /// call.
    pub(crate) fn is_lock_timeout(&self) -> bool {
        self.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }

    /// Whether this one call failed and others may succeed: PostgreSQL refused its content, or a lock that it needs is
    /// held by a transaction that does not end.
    pub(crate) fn is_refusal(&self) -> bool {
        const REFUSALS: [&str; 4] = ["22", "23", "54", "55"];
        self.code().is_some_and(|code| REFUSALS.contains(&&code.code()[..2]))
    }

    /// Whether the role lacks a right.
    pub(crate) fn is_missing_right(&self) -> bool {
        self.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
    }

    /// Whether a stored value cannot be read.
    pub(crate) fn is_about_a_value(&self) -> bool {
        matches!(self, PostgresError::Corrupt(_))
    }

    /// Whether one row that a statement changes may be the cause, so that the statement may succeed without it.
    /// Examples: a number out of range, a constraint or a trigger that was added by hand, a damaged page.
    pub(crate) fn is_about_a_row(&self) -> bool {
        const CLASSES: [&str; 4] = ["22", "23", "54", "P0"];
        self.is_damaged_page() || self.code().is_some_and(|code| CLASSES.contains(&&code.code()[..2]))
    }

    pub(crate) fn is_damaged_page(&self) -> bool {
        self.code().is_some_and(|code| [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED].contains(code))
    }

    /// The contract's error for this failure during the operation `doing`.
    pub(crate) fn into_error(self, doing: &str) -> Error {
        let text = format!("{doing}: {self}");
        if let PostgresError::Halfway(failure) = self {
            return failure.into_error(doing);
        }
        match (&self, self.code()) {
            (PostgresError::Closed, _) => Error::Closed,
            (PostgresError::Corrupt(_), _) => Error::Corrupt(text),
            (_, Some(code)) if *code == SqlState::DISK_FULL => Error::Full(text),
            _ if self.is_damaged_page() => Error::Corrupt(text),
            _ => Error::Unavailable(text),
        }
    }

    fn code(&self) -> Option<&SqlState> {
        match self {
            PostgresError::Postgres(error) => error.code(),
            PostgresError::Halfway(failure) | PostgresError::OtherOwners { failure, .. } => failure.code(),
            _ => None,
        }
    }
}

/// The server's own message if there is one: the driver's message only tells that there was an error.
pub fn describe_error(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    match (error.as_db_error(), error.source()) {
        (Some(told), _) => {
            format!("{} (SQLSTATE {}){}", told.message(), told.code().code(), hint(told).unwrap_or_default())
        }
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

/// An explanation of a server message that does not lead to the cause by itself.
fn hint(told: &tokio_postgres::error::DbError) -> Option<&'static str> {
    let code = told.code();
    if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        Some(": the server is a replica, or read-only")
    } else if *code == SqlState::INVALID_SQL_STATEMENT_NAME || *code == SqlState::DUPLICATE_PSTATEMENT {
        Some(": is there a transaction pooler in between? It needs --postgres-pooler transaction")
    } else if *code == SqlState::PROTOCOL_VIOLATION && told.message().contains("startup parameter") {
        Some(": is there a pooler in between? It needs --postgres-pooler transaction")
    } else {
        None
    }
}
