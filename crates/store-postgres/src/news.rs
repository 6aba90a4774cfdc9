//! News between processes: LISTEN and NOTIFY on one channel.
//!
//! A NOTIFY makes commits queue up behind one another, so it is sent rarely and by itself, never inside the transactions
//! that carry the load: lanes in which something became due that this process did not claim at once are gathered for
//! [`SAY_EVERY`], and a lane that was told of is not told of again for [`QUIET_FOR`]. Who has heard of a lane asks about
//! it until it is empty. What gets lost is found by the slow look that every process takes around.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redrive_core::{Dependency, Lane, TenantId, Timestamp};
use redrive_store::LaneDue;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_postgres::AsyncMessage;
use tokio_postgres::types::Type;

use crate::connect::{Address, Driven};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::pool::{Pool, call};

/// The channel; also in the function `redrive.enqueue`.
const CHANNEL: &str = "redrive_due";
/// The most bytes in one notification: PostgreSQL refuses 8,000.
const MAX_TEXT: usize = 7_900;
/// How long news is gathered.
const SAY_EVERY: Duration = Duration::from_millis(50);
/// How long a lane that was told of is not told of again.
const QUIET_FOR: Duration = Duration::from_secs(1);
/// How many lanes that were told of are remembered before the old ones are forgotten.
const REMEMBERED: usize = 10_000;
/// The pause before a listener that lost its connection tries again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// The most news that waits to be heard; what does not fit is found by looking.
const UNHEARD: usize = 1_024;

/// One lane in a notification. The short names are part of the channel's format.
#[derive(Debug, Serialize, Deserialize)]
struct Item {
    #[serde(rename = "n", skip_serializing_if = "Option::is_none", default)]
    node: Option<String>,
    #[serde(rename = "t")]
    tenant: String,
    #[serde(rename = "d")]
    dependency: String,
    #[serde(rename = "at")]
    due: u64,
}

/// Both ends of the news.
pub(crate) struct News {
    node: String,
    unsaid: Mutex<Unsaid>,
    ring: Notify,
    heard: tokio::sync::Mutex<mpsc::Receiver<LaneDue>>,
    hear: mpsc::Sender<LaneDue>,
}

#[derive(Default)]
struct Unsaid {
    lanes: BTreeMap<Lane, Timestamp>,
    /// Lanes that were told of: when, and as due when.
    said: BTreeMap<Lane, (Instant, Timestamp)>,
}

impl News {
    pub(crate) fn new(node: &str) -> Arc<Self> {
        let (hear, heard) = mpsc::channel(UNHEARD);
        Arc::new(News {
            node: node.to_owned(),
            unsaid: Mutex::default(),
            ring: Notify::new(),
            heard: tokio::sync::Mutex::new(heard),
            hear,
        })
    }

    /// Something of this lane is due and was not claimed in the same breath.
    pub(crate) fn tell(&self, lane: &Lane, due: Timestamp) {
        let mut unsaid = self.unsaid.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = unsaid.said.get(lane).is_some_and(|(said, known)| said.elapsed() < QUIET_FOR && *known <= due);
        if is_known || unsaid.lanes.get(lane).is_some_and(|known| *known <= due) {
            return;
        }
        unsaid.lanes.insert(lane.clone(), due);
        drop(unsaid);
        self.ring.notify_one();
    }

    /// What others said: waits for the first, then takes all there is.
    pub(crate) async fn heard(&self) -> Vec<LaneDue> {
        let mut heard = self.heard.lock().await;
        let mut all = Vec::new();
        heard.recv_many(&mut all, UNHEARD).await;
        all
    }

    /// Says what there is to say, for as long as it is let.
    pub(crate) async fn say(self: Arc<Self>, pool: Pool) {
        loop {
            self.ring.notified().await;
            tokio::time::sleep(SAY_EVERY).await;
            while let Some(text) = self.next_text() {
                if let Err(failure) = call!(pool, |connection| notify(connection, &text)) {
                    tracing::debug!(%failure, "telling other processes of new work");
                }
            }
        }
    }

    /// As many lanes as fit into one notification. One that fits into none is found by looking.
    fn next_text(&self) -> Option<String> {
        let mut unsaid = self.unsaid.lock().unwrap_or_else(PoisonError::into_inner);
        let mut items: Vec<String> = Vec::new();
        let mut length = "[]".len();
        while let Some((lane, due)) = unsaid.lanes.pop_first() {
            let item = self.item(&lane, due);
            length += item.len() + ",".len();
            if length > MAX_TEXT && !items.is_empty() {
                unsaid.lanes.insert(lane, due);
                break;
            }
            items.push(item);
            unsaid.said.insert(lane, (Instant::now(), due));
        }
        if unsaid.said.len() > REMEMBERED {
            unsaid.said.retain(|_, (said, _)| said.elapsed() < QUIET_FOR);
        }
        if items.is_empty() { None } else { Some(format!("[{}]", items.join(","))) }
    }

    fn item(&self, lane: &Lane, due: Timestamp) -> String {
        serde_json::json!(Item {
            node: Some(self.node.clone()),
            tenant: lane.tenant.to_string(),
            dependency: lane.dependency.to_string(),
            due: due.as_millis(),
        })
        .to_string()
    }

    /// Listens, on a connection of its own, for as long as it is let.
    pub(crate) async fn listen(self: Arc<Self>, address: Address) {
        loop {
            if let Err(failure) = self.listen_once(&address).await {
                tracing::warn!(%failure, "listening for other processes' news failed, trying again");
            }
            tokio::time::sleep(LISTEN_AGAIN).await;
        }
    }

    async fn listen_once(&self, address: &Address) -> Result<(), Failure> {
        let (client, driven) = address.connect().await?;
        let listen = format!("LISTEN {CHANNEL}");
        let listening = client.batch_execute(&listen);
        self.drive(listening, driven).await
    }

    /// Moves bytes until the connection ends, and passes on what comes in.
    async fn drive(
        &self,
        listening: impl Future<Output = Result<(), tokio_postgres::Error>>,
        mut driven: Driven,
    ) -> Result<(), Failure> {
        let mut listening = Box::pin(listening);
        let mut is_listening = false;
        loop {
            let message = poll_fn(|context| {
                if !is_listening && let std::task::Poll::Ready(outcome) = Pin::as_mut(&mut listening).poll(context) {
                    is_listening = true;
                    if let Err(error) = outcome {
                        return std::task::Poll::Ready(Some(Err(error)));
                    }
                }
                driven.poll_message(context)
            })
            .await;
            match message {
                Some(Ok(AsyncMessage::Notification(notification))) => self.pass_on(notification.payload()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(()),
            }
        }
    }

    fn pass_on(&self, payload: &str) {
        let items: Vec<Item> = match serde_json::from_str(payload) {
            Ok(items) => items,
            Err(error) => {
                tracing::debug!(%error, "a notification that cannot be understood");
                return;
            }
        };
        for item in items {
            if item.node.as_deref() == Some(&self.node) {
                continue;
            }
            if let (Ok(tenant), Ok(dependency)) =
                (TenantId::try_new(&item.tenant), Dependency::try_new(&item.dependency))
            {
                let next_due = Some(Timestamp::from_millis(item.due));
                let news = LaneDue { lane: Lane { tenant, dependency }, next_due };
                if self.hear.try_send(news).is_err() {
                    tracing::debug!("more news than anybody listens to");
                }
            }
        }
    }
}

async fn notify(connection: &Connection, text: &str) -> Result<(), Failure> {
    connection.query("SELECT pg_notify($1, $2)", &[(&CHANNEL, Type::TEXT), (&text, Type::TEXT)]).await.map(drop)
}
