//! The guards that the nodes share, over a connection whose calls are delayed, fail and lose their answers.

use std::sync::Arc;

use async_trait::async_trait;
use redrive_core::{Lane, Timestamp};
use redrive_store::{Error, GuardKey, News, SharedGuards, StateChange, VersionedState};

use super::connection::Connection;

#[async_trait]
impl SharedGuards for Connection {
    async fn read(&self, keys: Vec<GuardKey>) -> Result<Vec<Option<VersionedState>>, Error> {
        let world = self.world.clone();
        self.call("read_guards", |_| Box::pin(async move { world.guards.read(keys).await }), |_, _, _| ()).await
    }

    async fn replace(&self, changes: Vec<StateChange>) -> Result<Vec<Option<u64>>, Error> {
        let announced: Vec<Option<Lane>> = changes.iter().map(announced).collect();
        let world = self.world.clone();
        let seen = move |world: &Arc<super::World>, whose, replaced: &Vec<Option<u64>>| {
            for (lane, version) in announced.into_iter().zip(replaced) {
                if let (Some(lane), Some(_)) = (lane, version) {
                    world.announce(whose, &News::GuardsChanged(lane));
                }
            }
        };
        self.call("replace_guards", |_| Box::pin(async move { world.guards.replace(changes).await }), seen).await
    }

    async fn not_closed(&self, after: Option<Lane>, limit: usize) -> Result<Vec<(Lane, VersionedState)>, Error> {
        let world = self.world.clone();
        let work = move |_| -> super::connection::Work<_> {
            Box::pin(async move { world.guards.not_closed(after, limit).await })
        };
        self.call("not_closed", work, |_, _, _| ()).await
    }

    async fn clean(&self, now: Timestamp, limit: usize) -> Result<usize, Error> {
        let world = self.world.clone();
        self.call("clean_guards", move |_| Box::pin(async move { world.guards.clean(now, limit).await }), |_, _, _| ())
            .await
    }
}

fn announced(change: &StateChange) -> Option<Lane> {
    match &change.key {
        GuardKey::Lane(lane) if change.is_announced => Some(lane.clone()),
        _ => None,
    }
}
