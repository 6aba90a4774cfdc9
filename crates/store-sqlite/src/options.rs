//! Settings of the store, and their defaults.

use std::path::PathBuf;
use std::time::Duration;

use redrive_store::group_commit;

/// How a store is opened. Zero counts as one where zero is invalid.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory that holds the database and its lock; created if it is missing.
    pub directory: PathBuf,
    /// Threads that read, each with its own connection.
    pub readers: usize,
    /// Page cache of the writer; each reader has a quarter of it.
    pub cache_bytes: usize,
    /// How many idempotency keys are kept in memory before they are moved to the index on disk: so many of tasks, and so
    /// many of idempotency records. Up to twice as many are held while they are moved. A restart reads as many rows to find
    /// them again.
    pub recent_keys: usize,
    /// The size of the write-ahead log at which the writer completes a checkpoint and starts the log over.
    pub wal_limit_bytes: u64,
    /// How long after a commit the checkpointer begins its work.
    pub checkpoint_after: Duration,
    /// The bounds of the writer's queue and of one transaction.
    pub group_commit: group_commit::Options,
}

impl Options {
    /// The defaults, for this directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Options {
            directory: directory.into(),
            readers: 4,
            cache_bytes: 16 * 1024 * 1024,
            recent_keys: 500_000,
            wal_limit_bytes: 64 * 1024 * 1024,
            checkpoint_after: Duration::from_millis(50),
            group_commit: group_commit::Options::default(),
        }
    }
}
