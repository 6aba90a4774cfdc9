//! Makes the test's store a shared one, with a clock of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use async_trait::async_trait;
use redrive_core::{TaskId, TenantId, Timestamp};
use redrive_store::memory::MemorySharedGuards;
use redrive_store::*;

use super::START;

/// The store's clock, which can be set, and the nodes over it.
pub struct Peers {
    started: tokio::time::Instant,
    ahead_ms: AtomicI64,
    fails: AtomicBool,
    missed: AtomicBool,
    /// The guards that the engines of the test share.
    guards: MemorySharedGuards,
}

impl Peers {
    pub fn start() -> Arc<Self> {
        Arc::new(Peers {
            started: tokio::time::Instant::now(),
            ahead_ms: AtomicI64::new(0),
            fails: AtomicBool::new(false),
            missed: AtomicBool::new(false),
            guards: MemorySharedGuards::default(),
        })
    }

    /// Sets the store's clock this far ahead of the right time.
    pub fn set_ahead(&self, millis: i64) {
        self.ahead_ms.store(millis, Ordering::Relaxed);
    }

    /// The next query for missed notifications returns that there may be some.
    pub fn miss(&self) {
        self.missed.store(true, Ordering::Relaxed);
    }

    /// Sets whether reads of the store's clock and queries for missed notifications fail.
    pub fn fail(&self, fails: bool) {
        self.fails.store(fails, Ordering::Relaxed);
    }
}

#[async_trait]
impl SharedStore for Peers {
    async fn next_news(&self) -> Vec<News> {
        std::future::pending().await
    }

    async fn may_have_missed(&self, _: Timestamp) -> Result<bool, Error> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(Error::Unavailable("the other nodes cannot be read".into()));
        }
        Ok(self.missed.swap(false, Ordering::Relaxed))
    }

    async fn heartbeat(&self, _: Heartbeat, _: Timestamp) -> Result<(), Error> {
        Ok(())
    }

    async fn time(&self) -> Result<Timestamp, Error> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(Error::Unavailable("its clock cannot be read".into()));
        }
        let right = START.after(self.started.elapsed()).as_millis();
        Ok(Timestamp::from_millis(right.saturating_add_signed(self.ahead_ms.load(Ordering::Relaxed))))
    }

    async fn leave(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<Node>, Error> {
        Ok(Vec::new())
    }

    async fn claim_known(&self, _: ClaimKnownRequest) -> Result<Vec<ClaimedTask>, Error> {
        Ok(Vec::new())
    }

    async fn waiting(&self, _: Option<(TenantId, TaskId)>, _: usize) -> Result<Vec<PendingTask>, Error> {
        Ok(Vec::new())
    }

    async fn blob_storage_id(&self, mine: Option<BlobStorageId>) -> Result<Option<BlobStorageId>, Error> {
        Ok(mine)
    }

    fn guards(&self) -> &dyn SharedGuards {
        &self.guards
    }
}
