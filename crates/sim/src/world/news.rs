//! Notifications between processes over a shared store. They are delayed, and some never arrive.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use redrive_core::{TaskId, TenantId, Timestamp};
use redrive_store::{
    BlobStorageId, ClaimKnownRequest, ClaimedTask, Error, Heartbeat, News, Node, NodeId, PendingTask, SharedGuards,
    SharedStore,
};
use tokio::sync::Notify;

use super::connection::Connection;
use super::observer::Name;
use super::{World, lock};
use crate::executor::WORLD;
use crate::model::Whose;
use crate::random::Random;

/// The probability that a node receives a notification of another one.
const IS_HEARD: f64 = 0.7;

/// A mailbox for each node, and the last heartbeat of each.
pub(super) struct Mailboxes {
    random: Mutex<Random>,
    boxes: Vec<Mailbox>,
    beats: Mutex<BTreeMap<NodeId, (Heartbeat, Timestamp)>>,
}

#[derive(Default)]
struct Mailbox {
    news: Mutex<Vec<News>>,
    has_news: Notify,
}

impl Mailboxes {
    pub(super) fn new(nodes: usize, random: Random) -> Self {
        let boxes = (0..nodes).map(|_| Mailbox::default()).collect();
        Mailboxes { random: Mutex::new(random), boxes, beats: Mutex::default() }
    }
}

impl World {
    /// A cancel of a task in flight was committed: the other nodes are notified, unless the notification is lost.
    pub(super) fn announce_cancel(self: &Arc<Self>, by: Whose, tenant: &TenantId, id: TaskId) {
        self.announce(by, &News::CancelRequested(tenant.clone(), id));
    }

    /// Notifies the other nodes, unless the notification is lost.
    pub(super) fn announce(self: &Arc<Self>, by: Whose, news: &News) {
        if self.database.is_exclusive() {
            return;
        }
        for node in (0..self.nodes.len()).filter(|node| *node != by.node) {
            let mut random = lock(&self.mailboxes.random);
            let late = random.duration(Duration::from_micros(100), Duration::from_secs(2));
            if !random.chance(IS_HEARD) {
                continue;
            }
            drop(random);
            let (world, news) = (self.clone(), news.clone());
            self.executor.spawn(WORLD, async move {
                world.executor.sleep(late).await;
                let mailbox = &world.mailboxes.boxes[node];
                lock(&mailbox.news).push(news);
                mailbox.has_news.notify_one();
            });
        }
    }
}

impl Connection {
    fn id(&self) -> NodeId {
        NodeId::try_new(&self.whose.node.to_string()).unwrap_or_else(|_| NodeId::this())
    }
}

#[async_trait]
impl SharedStore for Connection {
    async fn next_news(&self) -> Vec<News> {
        let mailbox = &self.world.mailboxes.boxes[self.whose.node];
        loop {
            let news = std::mem::take(&mut *lock(&mailbox.news));
            if !news.is_empty() {
                self.world.effect(self.whose).await;
                let (now, whose, count) = (self.world.now(), self.whose, news.len());
                let text = || format!("{} hears {count} notifications", Name(whose));
                self.world.observer().note(now, (24, whose, count), None, text);
                return news;
            }
            mailbox.has_news.notified().await;
        }
    }

    async fn may_have_missed(&self, now: Timestamp) -> Result<bool, Error> {
        let beats = lock(&self.world.mailboxes.beats);
        let others = beats.iter().filter(|(id, _)| **id != self.id());
        let others = others.map(|(id, (beat, seen_at))| (id, beat, *seen_at));
        Ok(lock(&self.departed_nodes).look(others, now))
    }

    async fn heartbeat(&self, beat: Heartbeat, now: Timestamp) -> Result<(), Error> {
        lock(&self.world.mailboxes.beats).insert(self.id(), (beat, now));
        Ok(())
    }

    async fn time(&self) -> Result<Timestamp, Error> {
        let world = self.world.clone();
        self.call("time", move |_| Box::pin(async move { Ok(world.now().wall()) }), |_, _, _| ()).await
    }

    async fn leave(&self) -> Result<(), Error> {
        lock(&self.world.mailboxes.beats).remove(&self.id());
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<Node>, Error> {
        let beats = lock(&self.world.mailboxes.beats);
        let node = |(id, (beat, seen_at)): (&NodeId, &(Heartbeat, Timestamp))| Node {
            id: id.clone(),
            beat: beat.clone(),
            seen_at: *seen_at,
            leases: 0,
        };
        Ok(beats.iter().map(node).collect())
    }

    async fn claim_known(&self, _: ClaimKnownRequest) -> Result<Vec<ClaimedTask>, Error> {
        Err(not_here())
    }

    async fn waiting(&self, _: Option<(TenantId, TaskId)>, _: usize) -> Result<Vec<PendingTask>, Error> {
        Err(not_here())
    }

    async fn blob_storage_id(&self, mine: Option<BlobStorageId>) -> Result<Option<BlobStorageId>, Error> {
        Ok(mine)
    }

    fn guards(&self) -> &dyn SharedGuards {
        self
    }
}

/// The engine does not use these yet.
fn not_here() -> Error {
    Error::Unavailable("not simulated".to_owned())
}
