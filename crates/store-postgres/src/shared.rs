//! The calls of processes that share one database.

use std::sync::PoisonError;

use async_trait::async_trait;
use redrive_core::{Lane, TaskId, TenantId, Timestamp};
use redrive_store::{
    BlobStorageId, ClaimKnownRequest, ClaimedTask, Error, GuardKey, Heartbeat, News, Node, PendingTask, SharedGuards,
    SharedStore, StateChange, VersionedState,
};

use crate::ops;
use crate::pool::{call, read};
use crate::store::PostgresStore;

/// How often records are taken in one look, each time up to 10,000.
const TAKES: usize = 20;

impl PostgresStore {
    /// Takes the records of tasks that were enqueued without a notification, as long as there are some. Returns whether
    /// some were not passed on.
    async fn hear_untold(&self) -> Result<bool, Error> {
        let mut is_incomplete = false;
        for _ in 0..TAKES {
            let unnotified = call!(self.loop_pool, |connection| ops::unnotified_tasks::take(connection))
                .map_err(|failure| failure.into_error("taking notes of what was enqueued"))?;
            for lane in unnotified.lanes {
                is_incomplete |= !self.news.hear(News::Due(lane));
            }
            is_incomplete |= unnotified.is_damaged;
            if !unnotified.is_more {
                return Ok(is_incomplete);
            }
        }
        Ok(true)
    }
}

#[async_trait]
impl SharedStore for PostgresStore {
    async fn next_news(&self) -> Vec<News> {
        self.news.heard().await
    }

    async fn may_have_missed(&self, now: Timestamp) -> Result<bool, Error> {
        // Read first: what is missed from here on is reported by the next call.
        let has_missed = self.news.ear.has_missed();
        let is_incomplete = self.hear_untold().await?;
        let others = call!(self.loop_pool, |connection| async {
            self.news.probe(connection).await?;
            ops::nodes::others(connection, &self.node).await
        })
        .map_err(|failure| failure.into_error("asking after the other processes"))?;
        let others = others.iter().map(|other| (&other.id, &other.beat, other.seen_at));
        let has_gone = self.departed_nodes.lock().unwrap_or_else(PoisonError::into_inner).look(others, now);
        Ok(has_missed || has_gone || is_incomplete)
    }

    async fn heartbeat(&self, beat: Heartbeat, now: Timestamp) -> Result<(), Error> {
        let node = &self.node;
        call!(self.loop_pool, |connection| async {
            self.fence.look(connection).await?;
            let beat = Heartbeat { claims: beat.claims && self.fence.check().is_ok(), ..beat.clone() };
            ops::nodes::beat(connection, node, &beat, now).await
        })
        .map_err(|failure| failure.into_error("saying that this process lives"))
    }

    async fn time(&self) -> Result<Timestamp, Error> {
        read!(self.loop_pool, |connection| ops::time::time(connection))
            .map_err(|failure| failure.into_error("asking for the database's time"))
    }

    async fn leave(&self) -> Result<(), Error> {
        call!(self.pool, |connection| ops::nodes::leave(connection, &self.node))
            .map_err(|failure| failure.into_error("leaving"))
    }

    async fn nodes(&self) -> Result<Vec<Node>, Error> {
        read!(self.pool, |connection| ops::nodes::nodes(connection))
            .map_err(|failure| failure.into_error("listing processes"))
    }

    async fn claim_known(&self, request: ClaimKnownRequest) -> Result<Vec<ClaimedTask>, Error> {
        self.fence.check()?;
        if request.known.is_empty() {
            return Ok(Vec::new());
        }
        let claimant = self.claimant();
        call!(self.loop_pool, |connection| ops::claim::claim_known(connection, claimant, &request))
            .map_err(|failure| failure.into_error("claiming known tasks"))
    }

    async fn waiting(&self, after: Option<(TenantId, TaskId)>, limit: usize) -> Result<Vec<PendingTask>, Error> {
        read!(self.pool, |connection| ops::waiting::waiting(connection, &self.aside, after.as_ref(), limit))
            .map_err(|failure| failure.into_error("reading what waits"))
    }

    async fn blob_storage_id(&self, mine: Option<BlobStorageId>) -> Result<Option<BlobStorageId>, Error> {
        call!(self.pool, |connection| ops::blob_storage_id::blob_storage_id(connection, mine))
            .map_err(|failure| failure.into_error("finding out where bodies are kept"))
    }

    fn guards(&self) -> &dyn SharedGuards {
        self
    }
}

/// On the connections of the background loops, each of which makes one call at a time: readers use other connections,
/// and claims, of which a process makes one at a time, cannot use all of these.
#[async_trait]
impl SharedGuards for PostgresStore {
    async fn read(&self, keys: Vec<GuardKey>) -> Result<Vec<Option<VersionedState>>, Error> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        read!(self.loop_pool, |connection| ops::shared_guards::read(connection, &keys))
            .map_err(|failure| failure.into_error("reading the guards of all processes"))
    }

    async fn replace(&self, changes: Vec<StateChange>) -> Result<Vec<Option<u64>>, Error> {
        self.fence.check()?;
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let versions = call!(self.loop_pool, |connection| ops::shared_guards::replace(connection, &changes))
            .map_err(|failure| failure.into_error("changing the guards of all processes"))?;
        for (change, version) in changes.into_iter().zip(&versions) {
            if let (GuardKey::Lane(lane), Some(_), true) = (change.key, version, change.is_announced) {
                self.news.tell_guards(lane);
            }
        }
        Ok(versions)
    }

    async fn not_closed(&self, after: Option<Lane>, limit: usize) -> Result<Vec<(Lane, VersionedState)>, Error> {
        read!(self.loop_pool, |connection| ops::shared_guards::not_closed(
            connection,
            &self.aside,
            after.as_ref(),
            limit
        ))
        .map_err(|failure| failure.into_error("finding breakers that are not closed"))
    }

    async fn clean(&self, now: Timestamp, limit: usize) -> Result<usize, Error> {
        call!(self.loop_pool, |connection| ops::shared_guards::clean(connection, now, limit))
            .map_err(|failure| failure.into_error("deleting expired guards"))
    }
}
