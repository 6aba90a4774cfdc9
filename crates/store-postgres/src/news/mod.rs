//! News between processes: LISTEN and NOTIFY on one channel.
//!
//! A NOTIFY makes commits queue up behind one another. So it is sent rarely and by itself, never inside the
//! transactions that carry the load. Classes of lanes with due tasks that this process did not claim at once are
//! gathered for [`SAY_EVERY`], and one that was announced is not announced again for [`QUIET_FOR`]. A process that
//! receives an announcement claims from that class until it is empty. A lost notification is noticed
//! ([`ListenerState`]), and its tasks are found by a scan of all lanes.
//!
//! | file | content |
//! | --- | --- |
//! | `mod` | sends announcements, listens, and passes received news on |
//! | `send_queue` | the announcements to send, and how soon a lane may be announced again |
//! | `item` | the format of a notification |
//! | `listener_state` | detection of lost notifications |

mod item;
mod listener_state;
mod send_queue;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::{Class, Lane, TaskId, TenantId, Timestamp};
use redrive_store::{LaneDue, News as Announcement};
use tokio::sync::{Notify, mpsc};
use tokio_postgres::AsyncMessage;
use tokio_postgres::types::Type;

use crate::connect::{Address, Driven};
use crate::connection::Connection;
use crate::floors::Floors;
use crate::pool::{Pool, call};
use crate::postgres_error::PostgresError;
use item::{Item, ReceivedItem};
use listener_state::ListenerState;
use send_queue::{Outgoing, QUIET_FOR, SendQueue};

/// The channel's name, also used in the function `redrive.enqueue`.
const CHANNEL: &str = "redrive_due";
/// How long news is gathered.
const SAY_EVERY: Duration = Duration::from_millis(50);
/// The pause before a listener that lost its connection connects again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// The most received news that waits for the engine; what does not fit is found by a scan of all lanes.
const UNHEARD: usize = 1_024;

/// Sender and receiver of the news.
pub(crate) struct News {
    node: String,
    floors: Arc<Floors>,
    queue: Mutex<SendQueue>,
    ring: Notify,
    heard: tokio::sync::Mutex<mpsc::Receiver<Announcement>>,
    hear: mpsc::Sender<Announcement>,
    pub(crate) ear: ListenerState,
}

impl News {
    pub(crate) fn new(node: &str, floors: Arc<Floors>) -> Arc<Self> {
        let (hear, heard) = mpsc::channel(UNHEARD);
        Arc::new(News {
            node: node.to_owned(),
            floors,
            queue: Mutex::default(),
            ring: Notify::new(),
            heard: tokio::sync::Mutex::new(heard),
            hear,
            ear: ListenerState::default(),
        })
    }

    /// Announces that a task of this class of a lane is due and that this process did not claim it at once.
    pub(crate) fn tell(&self, lane: &Lane, class: Class, due: Timestamp) {
        self.queue().tell((lane.clone(), class), due);
        self.ring.notify_one();
    }

    /// Announces that a cancel of this task was committed while an attempt of it was in flight.
    pub(crate) fn tell_cancel(&self, tenant: TenantId, id: TaskId) {
        self.queue().tell_cancel(tenant, id);
        self.ring.notify_one();
    }

    /// Announces that the shared guards of this lane changed, or its controls.
    pub(crate) fn tell_guards(&self, lane: Lane) {
        self.queue().tell_guards(lane);
        self.ring.notify_one();
    }

    fn queue(&self) -> MutexGuard<'_, SendQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next announcement of other processes, then returns all that have arrived.
    pub(crate) async fn heard(&self) -> Vec<Announcement> {
        let mut heard = self.heard.lock().await;
        let mut all = Vec::new();
        heard.recv_many(&mut all, UNHEARD).await;
        all
    }

    /// Sends queued announcements until it is dropped.
    pub(crate) async fn say(self: Arc<Self>, pool: Pool) {
        loop {
            let is_empty = self.queue().is_empty();
            let rung = self.ring.notified();
            match is_empty {
                true => rung.await,
                // Some lanes wait for the end of their quiet time, or a notification could not be sent.
                false => drop(tokio::time::timeout(QUIET_FOR / 4, rung).await),
            }
            tokio::time::sleep(SAY_EVERY).await;
            while let Some(outgoing) = self.next_outgoing() {
                if let Err(failure) = call!(pool, |connection| notify(connection, &outgoing.text)) {
                    tracing::debug!(%failure, "telling other processes the news");
                    self.queue().put_back(outgoing);
                    tokio::time::sleep(QUIET_FOR).await;
                    break;
                }
            }
        }
    }

    fn next_outgoing(&self) -> Option<Outgoing> {
        self.queue().next(&self.node)
    }

    /// Sends a probe that this process should receive itself.
    pub(crate) async fn probe(&self, connection: &Connection) -> Result<(), PostgresError> {
        let item = Item::probe(&self.node, self.ear.next_probe());
        notify(connection, &format!("[{}]", item.text())).await
    }

    /// Listens on a separate connection until it is dropped.
    pub(crate) async fn listen(self: Arc<Self>, address: Address) {
        loop {
            if let Err(failure) = self.listen_once(&address).await {
                tracing::warn!(%failure, "listening for other processes' news failed, trying again");
            }
            tokio::time::sleep(LISTEN_AGAIN).await;
        }
    }

    async fn listen_once(&self, address: &Address) -> Result<(), PostgresError> {
        let (client, driven) = address.connect_for_writing().await?;
        let listen = format!("LISTEN {CHANNEL}");
        let listening = client.batch_execute(&listen);
        self.drive(listening, driven).await
    }

    /// Moves bytes until the connection ends, and passes received notifications on.
    async fn drive(
        &self,
        listening: impl Future<Output = Result<(), tokio_postgres::Error>>,
        mut driven: Driven,
    ) -> Result<(), PostgresError> {
        let mut listening = Box::pin(listening);
        let mut is_listening = false;
        loop {
            let message = poll_fn(|context| {
                if !is_listening && let std::task::Poll::Ready(outcome) = Pin::as_mut(&mut listening).poll(context) {
                    is_listening = true;
                    // Notifications that were sent before this are lost.
                    self.ear.missed();
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
        let items: Vec<ReceivedItem> = match serde_json::from_str(payload) {
            Ok(items) => items,
            Err(error) => {
                tracing::debug!(%error, "a notification that cannot be understood");
                self.ear.missed();
                return;
            }
        };
        for item in items {
            let ReceivedItem::Known(item) = item else {
                // A newer program may have announced a task.
                self.ear.missed();
                continue;
            };
            if item.is_from(&self.node) {
                item.probe_number().into_iter().for_each(|number| self.ear.heard_probe(number));
                continue;
            }
            for news in item.read() {
                if let Announcement::Due(LaneDue { lane, class, next_due: Some(due) }) = &news {
                    self.queue().told((lane.clone(), *class), *due);
                }
                self.hear(news);
            }
        }
    }

    /// Passes one item on to the engine; returns `false` if its queue is full. Then a scan of all lanes finds what was
    /// dropped.
    pub(crate) fn hear(&self, news: Announcement) -> bool {
        // Before the engine gets it and claims.
        if let Announcement::Due(due) = &news {
            self.floors.note_all(std::slice::from_ref(due));
        }
        let is_taken = self.hear.try_send(news).is_ok();
        if !is_taken {
            self.ear.missed();
        }
        is_taken
    }
}

async fn notify(connection: &Connection, text: &str) -> Result<(), PostgresError> {
    connection.query("SELECT pg_notify($1, $2)", &[(&CHANNEL, Type::TEXT), (&text, Type::TEXT)]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use redrive_core::Dependency;

    use super::*;

    fn due(class: Class) -> Announcement {
        let lane = Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new("b").unwrap() };
        Announcement::Due(LaneDue { lane, class, next_due: Some(Timestamp::from_millis(7)) })
    }

    fn hear(payload: &str) -> Vec<Announcement> {
        let news = News::new("two", Floors::new(QUIET_FOR..=QUIET_FOR));
        news.pass_on(payload);
        let mut heard = news.heard.try_lock().unwrap();
        std::iter::from_fn(|| heard.try_recv().ok()).collect()
    }

    #[test]
    fn what_the_version_before_and_enqueue_announce_is_understood() {
        for (payload, expected) in [
            (r#"[{"n":"one","t":"default","d":"b","at":7,"c":1}]"#, vec![due(Class::Retry)]),
            (r#"[{"n":"two","t":"default","d":"b","at":7,"c":1}]"#, vec![]),
            // From the previous version.
            (r#"[{"n":"one","t":"default","d":"b","at":7}]"#, vec![due(Class::First), due(Class::Retry)]),
            // From `redrive.enqueue`.
            (r#"[{"t":"default","d":"b","at":7}]"#, vec![due(Class::First)]),
            // From a later version.
            (r#"[{"n":"one","t":"default","d":"b","at":7,"c":9}]"#, vec![]),
            (r#"[{"n":"one","t":"default","x":"no task"}]"#, vec![]),
            ("[{}]", vec![]),
            (r#"[{"n":"one","t":"default","moon":"full"},7,{"t":"default","d":"b","at":7}]"#, vec![due(Class::First)]),
            (r#"[{"n":"one","t":"default","moon":"full","p":0}]"#, vec![]),
        ] {
            assert_eq!(hear(payload), expected, "{payload}");
        }
    }

    #[test]
    fn an_item_that_is_not_known_counts_as_missed_unless_it_has_a_probe_number() {
        for (payload, has_missed) in [
            (r#"[{"n":"one","t":"default","moon":"full"}]"#, true),
            (r#"[{"n":"one","t":"default","moon":"full","p":0}]"#, false),
            (r#"[{"n":"one","t":"default","d":"b","at":7},{}]"#, true),
            (r#"{"n":"one"}"#, true),
        ] {
            let news = News::new("two", Floors::new(QUIET_FOR..=QUIET_FOR));
            news.pass_on(payload);
            assert_eq!(news.ear.has_missed(), has_missed, "{payload}");
        }
    }

    #[test]
    fn a_program_that_does_not_know_guards_takes_their_item_for_a_probe_of_another_process() {
        let Announcement::Due(LaneDue { lane, .. }) = due(Class::First) else { panic!("a due task") };
        let item = Item::guards_changed("one", &lane).text();
        let fields = serde_json::json!({"n": "one", "t": "default", "g": "b", "p": 0});
        assert_eq!(serde_json::from_str::<serde_json::Value>(&item).unwrap(), fields);
        assert_eq!(hear(&format!("[{item}]")), [Announcement::GuardsChanged(lane)]);
        let unknown = item.replace("\"g\"", "\"unknown\"");
        assert_eq!(serde_json::from_str::<Item>(&unknown).unwrap().probe_number(), Some(0));
        assert_eq!(hear(&format!("[{unknown}]")), []);
    }
}
