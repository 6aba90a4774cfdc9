//! Guards and controls of lanes: in the store alone. Changes are announced over Redis as well, because a store behind a
//! transaction pooler cannot announce them itself.

use async_trait::async_trait;
use redrive_core::guards::Controls;
use redrive_core::{Lane, Timestamp};
use redrive_store::{Error, GuardKey, LaneControls, SharedGuards, StateChange, VersionedState};

use super::Scheduled;

#[async_trait]
impl SharedGuards for Scheduled {
    async fn read(&self, keys: Vec<GuardKey>) -> Result<Vec<Option<VersionedState>>, Error> {
        self.inner()?.guards().read(keys).await
    }

    async fn replace(&self, changes: Vec<StateChange>) -> Result<Vec<Option<u64>>, Error> {
        let announced = |change: &StateChange| match &change.key {
            GuardKey::Lane(lane) if change.is_announced => Some(lane.clone()),
            GuardKey::Lane(_) | GuardKey::Origin(..) => None,
        };
        let lanes: Vec<Option<Lane>> = changes.iter().map(announced).collect();
        let versions = self.inner()?.guards().replace(changes).await?;
        let replaced = lanes.into_iter().zip(&versions).filter(|(_, version)| version.is_some());
        self.state.news.announce_guards(replaced.filter_map(|(lane, _)| lane));
        Ok(versions)
    }

    async fn not_closed(&self, after: Option<Lane>, limit: usize) -> Result<Vec<(Lane, VersionedState)>, Error> {
        self.inner()?.guards().not_closed(after, limit).await
    }

    async fn clean(&self, now: Timestamp, limit: usize) -> Result<usize, Error> {
        self.inner()?.guards().clean(now, limit).await
    }
}

#[async_trait]
impl LaneControls for Scheduled {
    async fn replace(&self, lane: Lane, expected: Controls, new: Controls) -> Result<bool, Error> {
        let replaced = self.state.store.controls().replace(lane.clone(), expected, new).await?;
        if replaced {
            self.state.news.announce_guards([lane]);
        }
        Ok(replaced)
    }

    async fn list(&self, after: Option<Lane>, limit: usize) -> Result<Vec<(Lane, Controls)>, Error> {
        self.state.store.controls().list(after, limit).await
    }
}
