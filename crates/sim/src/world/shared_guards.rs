//! The guards that the nodes share, over a connection whose calls are delayed, fail and lose their answers.

use std::sync::Arc;

use async_trait::async_trait;
use redrive_core::guards::shared::SharedLane;
use redrive_core::{Lane, Timestamp};
use redrive_store::{Error, GuardKey, News, SharedGuards, StateChange, VersionedState};

use super::connection::Connection;
use crate::model::Whose;

#[async_trait]
impl SharedGuards for Connection {
    async fn read(&self, keys: Vec<GuardKey>) -> Result<Vec<Option<VersionedState>>, Error> {
        let world = self.world.clone();
        self.call("read_guards", |_| Box::pin(async move { world.guards.read(keys).await }), |_, _, _| ()).await
    }

    async fn replace(&self, changes: Vec<StateChange>) -> Result<Vec<Option<u64>>, Error> {
        let asked = changes.clone();
        let world = self.world.clone();
        let seen = move |world: &Arc<super::World>, whose, replaced: &Vec<Option<u64>>| {
            for (change, _) in asked.iter().zip(replaced).filter(|(_, version)| version.is_some()) {
                saw_change(world, whose, change);
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

fn saw_change(world: &Arc<super::World>, whose: Whose, change: &StateChange) {
    let GuardKey::Lane(lane) = &change.key else { return };
    if let Ok(stored) = serde_json::from_str::<SharedLane>(&change.state) {
        world.observer().breaker_stored(world.now(), whose, lane, &stored.breaker, change.is_announced);
    }
    if change.is_announced {
        world.announce(whose, &News::GuardsChanged(lane.clone()));
    }
}
