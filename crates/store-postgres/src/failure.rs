//! What can go wrong between here and PostgreSQL, and what each of it means.

use redrive_store::Error;
use tokio_postgres::error::SqlState;

use crate::connect::ConnectError;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// PostgreSQL said no, or is out of reach.
    #[error("{}", told(.0))]
    Postgres(#[from] tokio_postgres::Error),
    /// Nothing came back in time.
    #[error("no answer from PostgreSQL within {0:?}")]
    TimedOut(std::time::Duration),
    /// Every connection is taken, and nothing was sent.
    #[error("no connection to PostgreSQL became free within {0:?}: all of them wait for its answers")]
    Busy(std::time::Duration),
    /// It could not be connected to.
    #[error("connecting to PostgreSQL: {0}")]
    Unreachable(#[from] ConnectError),
    /// A part of it was committed before.
    #[error("{0}")]
    Halfway(Box<Failure>),
    /// A value that nobody here can have written.
    #[error("{0}")]
    Corrupt(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl Failure {
    /// A value that cannot be understood, and where it stands.
    pub(crate) fn corrupt(place: impl std::fmt::Display, what: impl std::fmt::Display) -> Self {
        Failure::Corrupt(format!("{place}: {what}"))
    }

    /// Whether the same call may well succeed at once: two transactions stood in each other's way, and nothing of this
    /// one happened. (A key that another one has just taken is seen by the next try.)
    pub(crate) fn is_conflict(&self) -> bool {
        let conflicts =
            [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE, SqlState::UNIQUE_VIOLATION];
        self.code().is_some_and(|code| conflicts.contains(code))
    }

    /// Whether nobody knows what became of the call: the connection ended, or was given up, before the answer.
    pub(crate) fn is_in_doubt(&self) -> bool {
        match self {
            Failure::Postgres(error) => error.code().is_none_or(|code| {
                // The server's own last words before it cuts the connection. What was cancelled may have been the second
                // statement of a call whose first is committed.
                [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::QUERY_CANCELED].contains(code)
            }),
            Failure::TimedOut(_) => true,
            Failure::Halfway(_) => !self.is_conflict() && !self.is_refusal(),
            Failure::Busy(_) | Failure::Unreachable(_) | Failure::Corrupt(_) | Failure::Closed => false,
        }
    }

    /// Whether the connection ended before the answer.
    pub(crate) fn is_lost_connection(&self) -> bool {
        match self {
            Failure::Postgres(error) => error.is_closed() || self.is_in_doubt() && !self.is_cancelled(),
            _ => false,
        }
    }

    /// Whether the server refused to write, and nothing of the call happened: it is a replica, or read-only.
    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            Failure::Postgres(_) => self.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION),
            _ => false,
        }
    }

    /// Whether the connection is of no use to the next call either: it leads to a server that does not do what is needed, or
    /// that is about to close it.
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

    /// The same failure, after a part of the call was committed. Making the call again finds out which.
    pub(crate) fn halfway(failure: Failure) -> Self {
        Failure::Halfway(Box::new(failure))
    }

    /// Whether the same call may succeed in a while, whatever is in it.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Failure::Postgres(_) => !self.is_refusal(),
            Failure::TimedOut(_) | Failure::Busy(_) | Failure::Unreachable(_) => true,
            Failure::Halfway(failure) => failure.is_passing(),
            Failure::Corrupt(_) | Failure::Closed => false,
        }
    }

    /// Whether what it needs is held by another transaction, which may be the first try of the same call.
    pub(crate) fn is_lock_timeout(&self) -> bool {
        self.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }

    /// Whether this one call is at fault, and another may do: PostgreSQL refused what was in it, or what it needs is held
    /// by a transaction that does not end.
    pub(crate) fn is_refusal(&self) -> bool {
        const REFUSALS: [&str; 4] = ["22", "23", "54", "55"];
        self.code().is_some_and(|code| REFUSALS.contains(&&code.code()[..2]))
    }

    /// Whether a value that was read cannot be understood.
    pub(crate) fn is_about_a_value(&self) -> bool {
        matches!(self, Failure::Corrupt(_))
    }

    /// Whether one row of those that a statement changes may be at fault: without it the statement may succeed. A number that
    /// is out of range, a constraint or a trigger that was added by hand, a page that is damaged.
    pub(crate) fn is_about_a_row(&self) -> bool {
        const CLASSES: [&str; 4] = ["22", "23", "54", "P0"];
        self.is_damaged_page() || self.code().is_some_and(|code| CLASSES.contains(&&code.code()[..2]))
    }

    pub(crate) fn is_damaged_page(&self) -> bool {
        self.code().is_some_and(|code| [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED].contains(code))
    }

    /// The contract's error for this failure while `doing` something.
    pub(crate) fn into_error(self, doing: &str) -> Error {
        let text = format!("{doing}: {self}");
        if let Failure::Halfway(failure) = self {
            return failure.into_error(doing);
        }
        match (&self, self.code()) {
            (Failure::Closed, _) => Error::Closed,
            (Failure::Corrupt(_), _) => Error::Corrupt(text),
            (_, Some(code)) if *code == SqlState::DISK_FULL => Error::Full(text),
            _ if self.is_damaged_page() => Error::Corrupt(text),
            _ => Error::Unavailable(text),
        }
    }

    fn code(&self) -> Option<&SqlState> {
        match self {
            Failure::Postgres(error) => error.code(),
            Failure::Halfway(failure) => failure.code(),
            _ => None,
        }
    }
}

/// What went wrong, in the server's own words where there are some: the crate's say only that there was an error.
pub fn told(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    match (error.as_db_error(), error.source()) {
        (Some(told), _) => {
            format!("{} (SQLSTATE {}){}", told.message(), told.code().code(), hint(told).unwrap_or_default())
        }
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

/// What the server's words mean here, where they would lead nobody to the cause.
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
