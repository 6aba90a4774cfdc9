//! Failures of SQLite, and their classification.
//!
//! A failed sync ends the process. After it, the content of the disk is unknown: the kernel may have dropped the pages
//! and would report the next sync as successful. A restart reads what is really on the disk.

use redrive_store::Error;
use rusqlite::ffi;

/// Why a job on a connection failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SqliteError {
    /// SQLite returned an error.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// A stored value that this program cannot have written.
    #[error("{0}")]
    Corrupt(String),
}

impl SqliteError {
    /// A failure about a value that cannot be read, and where it is stored.
    pub(crate) fn corrupt(place: impl std::fmt::Display, what: impl std::fmt::Display) -> Self {
        SqliteError::Corrupt(format!("{place}: {what}"))
    }

    /// Adds the place of the value to a failure about a value; other failures stay unchanged.
    pub(crate) fn at(self, place: impl std::fmt::Display) -> Self {
        if self.is_about_a_value() { SqliteError::corrupt(place, self) } else { self }
    }

    /// Whether the failure is about a stored value and not about the database.
    pub(crate) fn is_about_a_value(&self) -> bool {
        match self {
            SqliteError::Corrupt(_) => true,
            SqliteError::Sqlite(error) => is_about_a_value(error),
        }
    }

    /// The contract's error for this failure during the operation `doing`; does not return after a failed sync.
    pub(crate) fn into_error(self, doing: &str) -> Error {
        let error = match self {
            SqliteError::Corrupt(what) => return Error::Corrupt(format!("{doing}: {what}")),
            SqliteError::Sqlite(error) => error,
        };
        let text = format!("{doing}: {error}");
        match Kind::of(&error) {
            Kind::SyncFailed => end_process(&text),
            Kind::Full => Error::Full(text),
            Kind::Corrupt => Error::Corrupt(text),
            Kind::Other => Error::Unavailable(text),
        }
    }
}

/// Whether a column has a value of the wrong type or form.
fn is_about_a_value(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
    )
}

/// The meaning of a SQLite error for the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Full,
    Corrupt,
    SyncFailed,
    Other,
}

impl Kind {
    fn of(error: &rusqlite::Error) -> Kind {
        match error {
            rusqlite::Error::SqliteFailure(code, _) => Kind::of_code(code.extended_code),
            error if is_about_a_value(error) => Kind::Corrupt,
            _ => Kind::Other,
        }
    }

    fn of_code(extended: i32) -> Kind {
        const PRIMARY: i32 = 0xFF;
        match extended {
            ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC => Kind::SyncFailed,
            // Growing the shared index of the write-ahead log fails this way on a full disk.
            ffi::SQLITE_IOERR_SHMSIZE => Kind::Full,
            code => match code & PRIMARY {
                ffi::SQLITE_FULL => Kind::Full,
                ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => Kind::Corrupt,
                _ => Kind::Other,
            },
        }
    }
}

fn end_process(what: &str) -> ! {
    tracing::error!(error = what, "the disk failed to sync; ending the process");
    // The log's writer may be another thread, and an abort does not wait for it.
    eprintln!("redrive: the disk failed to sync; ending the process: {what}");
    std::process::abort();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_mean_what_they_should() {
        for (code, kind) in [
            (ffi::SQLITE_FULL, Kind::Full),
            (ffi::SQLITE_IOERR_SHMSIZE, Kind::Full),
            (ffi::SQLITE_IOERR_FSYNC, Kind::SyncFailed),
            (ffi::SQLITE_IOERR_DIR_FSYNC, Kind::SyncFailed),
            (ffi::SQLITE_IOERR_WRITE, Kind::Other),
            (ffi::SQLITE_BUSY, Kind::Other),
            (ffi::SQLITE_CORRUPT_INDEX, Kind::Corrupt),
            (ffi::SQLITE_NOTADB, Kind::Corrupt),
        ] {
            assert_eq!(Kind::of_code(code), kind, "code {code}");
        }
    }
}
