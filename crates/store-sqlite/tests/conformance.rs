//! The conformance suite for the SQLite store.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

use redrive_store::conformance::Fresh;
use redrive_store_sqlite::{Options, SqliteStore};

async fn fresh() -> Fresh {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(Options::new(directory.path())).unwrap();
    Fresh::keeping(store, directory)
}

redrive_store::conformance!(fresh);

/// The same suite with a small limit, so that keys soon move to disk.
mod with_few_keys_in_memory {
    use super::*;

    async fn fresh() -> Fresh {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { recent_keys: 1, ..Options::new(directory.path()) };
        Fresh::keeping(SqliteStore::open(options).unwrap(), directory)
    }

    redrive_store::conformance!(fresh);
}
