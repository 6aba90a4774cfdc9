//! The shared store's calls: passed to the store, except news.

use async_trait::async_trait;
use redrive_core::{TaskId, TenantId, Timestamp};
use redrive_store::{
    BlobStorageId, ClaimKnownRequest, ClaimedTask, Error, Heartbeat, News, Node, PendingTask, SharedGuards, SharedStore,
};

use super::Scheduled;

impl Scheduled {
    pub(super) fn inner(&self) -> Result<&dyn SharedStore, Error> {
        // Checked by the constructor; a store does not stop being shared.
        self.state.store.shared().ok_or_else(|| Error::Unavailable("the store is not shared".into()))
    }
}

#[async_trait]
impl SharedStore for Scheduled {
    async fn next_news(&self) -> Vec<News> {
        self.state.news.heard().await
    }

    /// Always `true`: all lanes are read every time, to compare the index with the store. The store is called all the
    /// same, so that it takes its records of enqueued tasks.
    async fn may_have_missed(&self, now: Timestamp) -> Result<bool, Error> {
        self.inner()?.may_have_missed(now).await.map(|_| true)
    }

    async fn heartbeat(&self, beat: Heartbeat, now: Timestamp) -> Result<(), Error> {
        self.inner()?.heartbeat(beat, now).await
    }

    async fn time(&self) -> Result<Timestamp, Error> {
        self.inner()?.time().await
    }

    async fn leave(&self) -> Result<(), Error> {
        self.inner()?.leave().await
    }

    async fn nodes(&self) -> Result<Vec<Node>, Error> {
        self.inner()?.nodes().await
    }

    async fn claim_known(&self, request: ClaimKnownRequest) -> Result<Vec<ClaimedTask>, Error> {
        self.inner()?.claim_known(request).await
    }

    async fn waiting(&self, after: Option<(TenantId, TaskId)>, limit: usize) -> Result<Vec<PendingTask>, Error> {
        self.inner()?.waiting(after, limit).await
    }

    async fn blob_storage_id(&self, mine: Option<BlobStorageId>) -> Result<Option<BlobStorageId>, Error> {
        self.inner()?.blob_storage_id(mine).await
    }

    fn guards(&self) -> &dyn SharedGuards {
        self
    }
}
