//! Whether the store works, and what it holds that cannot be read.

use async_trait::async_trait;

use crate::Error;

/// Tells how the store is.
#[async_trait]
pub trait Health: Send + Sync {
    /// Whether the store can be written to right now.
    async fn check(&self) -> Result<(), Error>;

    /// Whether the data is still where the next start looks for it: files may have been deleted or replaced under a process
    /// that has them open. A part of [`check`](Health::check).
    async fn check_location(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The rows that are set aside because they cannot be read: how many, and the first `limit` of them.
    async fn set_aside(&self, _limit: usize) -> Result<SetAside, Error> {
        Ok(SetAside::default())
    }

    /// Completes when a thread or task of the store has died, with its name. The process has to be restarted then.
    async fn died(&self) -> &'static str {
        std::future::pending().await
    }
}

/// The rows of a store that this program cannot read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetAside {
    /// How many rows.
    pub count: u64,
    /// The first of them.
    pub rows: Vec<UnreadableRow>,
}

/// A row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRow {
    /// Which row of which kind.
    pub row: String,
    /// What is wrong with it.
    pub problem: String,
}
