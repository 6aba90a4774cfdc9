//! The store's health, and the rows that cannot be read.

use async_trait::async_trait;

use crate::{CommitCounts, Error};

/// Reports the health of the store.
#[async_trait]
pub trait Health: Send + Sync {
    /// Checks that the store can be written to at the moment.
    async fn check(&self) -> Result<(), Error>;

    /// Checks that the data is still where the next start looks for it: files may have been deleted or replaced while
    /// this process has them open. A part of [`check`](Health::check).
    async fn check_location(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The rows that are set aside because they cannot be read: their number and the first `limit` of them.
    async fn set_aside(&self, _limit: usize) -> Result<SetAside, Error> {
        Ok(SetAside::default())
    }

    /// How long the commits of batches took and how many calls each held, if this store writes in batches.
    fn commits(&self) -> Option<CommitCounts> {
        None
    }

    /// Completes with the name of a thread or task of the store that has died. The process must be restarted then.
    async fn died(&self) -> &'static str {
        std::future::pending().await
    }
}

/// The rows of a store that this program cannot read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetAside {
    /// The number of rows.
    pub count: u64,
    /// The first rows.
    pub rows: Vec<UnreadableRow>,
}

/// A row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRow {
    /// The kind and the key of the row.
    pub row: String,
    /// Why it cannot be read.
    pub problem: String,
}
