//! News between processes: LISTEN and NOTIFY on one channel.
//!
//! A NOTIFY makes commits queue up behind one another, so it is sent rarely and by itself, never inside the transactions
//! that carry the load: classes of lanes in which something became due that this process did not claim at once are gathered
//! for [`SAY_EVERY`], and one that was told of is not told of again for [`QUIET_FOR`]. Who has heard of one asks about it
//! until it is empty. What gets lost is noticed ([`Ear`]), and found by a look at all lanes.
//!
//! Cancels of tasks in flight are gathered in the same way, and sent in notifications of their own: processes of the version
//! before understand no notification that has one in it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::{Class, Dependency, Lane, TaskId, TenantId, Timestamp};
use redrive_store::{LaneDue, News as Announcement};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_postgres::AsyncMessage;
use tokio_postgres::types::Type;

use crate::connect::{Address, Driven};
use crate::connection::Connection;
use crate::ear::Ear;
use crate::failure::Failure;
use crate::floors::Floors;
use crate::pool::{Pool, call};

/// The channel; also in the function `redrive.enqueue`.
const CHANNEL: &str = "redrive_due";
/// The most bytes in one notification: PostgreSQL refuses 8,000.
const MAX_TEXT: usize = 7_900;
/// How long news is gathered.
const SAY_EVERY: Duration = Duration::from_millis(50);
/// How long a lane that was told of is not told of again.
const QUIET_FOR: Duration = Duration::from_secs(1);
/// The most cancels that wait to be told. The attempt that one is about ends by itself.
const CANCELS: usize = 10_000;
/// How many classes of lanes that were told of are remembered before the old ones are forgotten.
const REMEMBERED: usize = 10_000;
/// The pause before a listener that lost its connection tries again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// The most news that waits to be heard; what does not fit is found by looking.
const UNHEARD: usize = 1_024;

/// One item of a notification. The short names are part of the channel's format.
#[derive(Debug, Serialize, Deserialize)]
struct Item {
    #[serde(rename = "n", skip_serializing_if = "Option::is_none", default)]
    node: Option<String>,
    #[serde(rename = "t")]
    tenant: String,
    #[serde(flatten)]
    what: What,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum What {
    Due {
        #[serde(rename = "d")]
        dependency: String,
        #[serde(rename = "at")]
        due: u64,
        /// Unknown to processes of the version before, and to `redrive.enqueue`, which makes first attempts only.
        #[serde(rename = "c", skip_serializing_if = "Option::is_none", default)]
        class: Option<u8>,
    },
    CancelRequested {
        #[serde(rename = "x")]
        task: String,
    },
    /// What a process says to itself, in a notification of its own, to learn whether it hears. It has no tenant.
    Probe {
        #[serde(rename = "p")]
        number: u64,
    },
}

/// Both ends of the news.
pub(crate) struct News {
    node: String,
    floors: Arc<Floors>,
    unsaid: Mutex<Unsaid>,
    ring: Notify,
    heard: tokio::sync::Mutex<mpsc::Receiver<Announcement>>,
    hear: mpsc::Sender<Announcement>,
    pub(crate) ear: Ear,
}

#[derive(Default)]
struct Unsaid {
    lanes: BTreeMap<(Lane, Class), Timestamp>,
    /// Those that were told of: when, and as due when.
    said: BTreeMap<(Lane, Class), (Instant, Timestamp)>,
    cancels: BTreeSet<(TenantId, TaskId)>,
}

impl Unsaid {
    fn put(&mut self, (key, due): ((Lane, Class), Timestamp)) {
        let known = self.lanes.entry(key).or_insert(due);
        *known = due.min(*known);
    }

    /// Whether it was told of a moment ago, as due no later.
    fn is_known(&self, key: &(Lane, Class), due: Timestamp) -> bool {
        self.said.get(key).is_some_and(|(said, known)| said.elapsed() < QUIET_FOR && *known <= due)
    }

    /// Another process has told of it.
    fn told(&mut self, key: (Lane, Class), due: Timestamp) {
        if self.lanes.get(&key).is_some_and(|known| *known >= due) {
            self.lanes.remove(&key);
        }
        self.said.insert(key, (Instant::now(), due));
    }
}

/// One notification, and what is in it.
struct Saying {
    text: String,
    lanes: Vec<((Lane, Class), Timestamp)>,
    cancels: Vec<(TenantId, TaskId)>,
}

impl News {
    pub(crate) fn new(node: &str, floors: Arc<Floors>) -> Arc<Self> {
        let (hear, heard) = mpsc::channel(UNHEARD);
        Arc::new(News {
            node: node.to_owned(),
            floors,
            unsaid: Mutex::default(),
            ring: Notify::new(),
            heard: tokio::sync::Mutex::new(heard),
            hear,
            ear: Ear::default(),
        })
    }

    /// Something of this class of a lane is due, and this process did not claim it at once.
    pub(crate) fn tell(&self, lane: &Lane, class: Class, due: Timestamp) {
        let key = (lane.clone(), class);
        let mut unsaid = self.unsaid();
        // What does not fit is found by looking.
        if unsaid.lanes.len() < REMEMBERED || unsaid.lanes.contains_key(&key) {
            unsaid.put((key, due));
            drop(unsaid);
            self.ring.notify_one();
        }
    }

    /// A cancel of this task was committed while an attempt of it was in flight.
    pub(crate) fn tell_cancel(&self, tenant: TenantId, id: TaskId) {
        let mut unsaid = self.unsaid();
        if unsaid.cancels.len() >= CANCELS {
            return;
        }
        unsaid.cancels.insert((tenant, id));
        drop(unsaid);
        self.ring.notify_one();
    }

    fn unsaid(&self) -> MutexGuard<'_, Unsaid> {
        self.unsaid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What others said: waits for the first, then takes all there is.
    pub(crate) async fn heard(&self) -> Vec<Announcement> {
        let mut heard = self.heard.lock().await;
        let mut all = Vec::new();
        heard.recv_many(&mut all, UNHEARD).await;
        all
    }

    /// Says what there is to say, for as long as it is let.
    pub(crate) async fn say(self: Arc<Self>, pool: Pool) {
        loop {
            let is_left = !self.unsaid().lanes.is_empty();
            let rung = self.ring.notified();
            match is_left {
                // Their quiet time comes to its end.
                true => drop(tokio::time::timeout(QUIET_FOR / 4, rung).await),
                false => rung.await,
            }
            tokio::time::sleep(SAY_EVERY).await;
            while let Some(saying) = self.next_cancels().or_else(|| self.next_lanes()) {
                if let Err(failure) = call!(pool, |connection| notify(connection, &saying.text)) {
                    tracing::debug!(%failure, "telling other processes the news");
                    self.not_said(saying);
                    tokio::time::sleep(QUIET_FOR).await;
                    break;
                }
            }
        }
    }

    /// It is said another time.
    fn not_said(&self, Saying { lanes, cancels, .. }: Saying) {
        let mut unsaid = self.unsaid();
        for (key, due) in lanes {
            unsaid.said.remove(&key);
            unsaid.put((key, due));
        }
        unsaid.cancels.extend(cancels);
        drop(unsaid);
        self.ring.notify_one();
    }

    /// Says something that this process itself should hear.
    pub(crate) async fn probe(&self, connection: &Connection) -> Result<(), Failure> {
        let what = What::Probe { number: self.ear.next_probe() };
        let item = Item { node: Some(self.node.clone()), tenant: String::new(), what };
        notify(connection, &serde_json::json!([item]).to_string()).await
    }

    /// As many cancels as fit into one notification.
    fn next_cancels(&self) -> Option<Saying> {
        let mut unsaid = self.unsaid();
        let (mut text, mut cancels) = (Text::default(), Vec::new());
        while let Some((tenant, id)) = unsaid.cancels.pop_first() {
            let what = What::CancelRequested { task: id.to_string() };
            if !text.push(self.item(&tenant, what)) {
                unsaid.cancels.insert((tenant, id));
                break;
            }
            cancels.push((tenant, id));
        }
        text.finish().map(|text| Saying { text, lanes: Vec::new(), cancels })
    }

    /// As many classes of lanes as fit into one notification.
    fn next_lanes(&self) -> Option<Saying> {
        let mut unsaid = self.unsaid();
        let (mut text, mut lanes, mut later) = (Text::default(), Vec::new(), BTreeMap::new());
        while let Some(((lane, class), due)) = unsaid.lanes.pop_first() {
            let key = (lane, class);
            if unsaid.is_known(&key, due) {
                later.insert(key, due);
                continue;
            }
            let (lane, class) = key;
            let dependency = lane.dependency.to_string();
            let what = What::Due { dependency, due: due.as_millis(), class: Some(class.code()) };
            if !text.push(self.item(&lane.tenant, what)) {
                unsaid.lanes.insert((lane, class), due);
                break;
            }
            unsaid.said.insert((lane.clone(), class), (Instant::now(), due));
            lanes.push(((lane, class), due));
        }
        unsaid.lanes.append(&mut later);
        if unsaid.said.len() > REMEMBERED {
            unsaid.said.retain(|_, (said, _)| said.elapsed() < QUIET_FOR);
        }
        text.finish().map(|text| Saying { text, lanes, cancels: Vec::new() })
    }

    fn item(&self, tenant: &TenantId, what: What) -> String {
        serde_json::json!(Item { node: Some(self.node.clone()), tenant: tenant.to_string(), what }).to_string()
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
        let (client, driven) = address.connect_for_writing().await?;
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
                    // What was said before is lost.
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
        let items: Vec<Item> = match serde_json::from_str(payload) {
            Ok(items) => items,
            Err(error) => {
                tracing::debug!(%error, "a notification that cannot be understood");
                self.ear.missed();
                return;
            }
        };
        for item in items {
            let is_mine = item.node.as_deref() == Some(&self.node);
            if is_mine && let What::Probe { number } = item.what {
                self.ear.heard_probe(number);
            }
            if is_mine {
                continue;
            }
            for news in item.read() {
                if let Announcement::Due(LaneDue { lane, class, next_due: Some(due) }) = &news {
                    self.unsaid().told((lane.clone(), *class), *due);
                }
                self.hear(news);
            }
        }
    }

    /// Passes one item on; what nobody takes is looked for. Says whether it was taken.
    pub(crate) fn hear(&self, news: Announcement) -> bool {
        // Before it is heard, and asked for.
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

impl Item {
    /// What it says; nothing if it names what cannot be.
    fn read(self) -> Vec<Announcement> {
        let Ok(tenant) = TenantId::try_new(&self.tenant) else { return Vec::new() };
        match self.what {
            What::Due { dependency, due, class } => {
                let Ok(dependency) = Dependency::try_new(&dependency) else { return Vec::new() };
                let lane = Lane { tenant, dependency };
                let next_due = Some(Timestamp::from_millis(due));
                let classes: Vec<Class> = match (class, &self.node) {
                    (Some(code), _) => Class::from_code(code).into_iter().collect(),
                    (None, None) => vec![Class::First],
                    // A process of the version before: it may be either.
                    (None, Some(_)) => Class::ALL.to_vec(),
                };
                let news = |class| Announcement::Due(LaneDue { lane: lane.clone(), class, next_due });
                classes.into_iter().map(news).collect()
            }
            What::Probe { .. } => Vec::new(),
            What::CancelRequested { task } => {
                let id = task.parse().ok();
                id.map(|id| Announcement::CancelRequested(tenant, id)).into_iter().collect()
            }
        }
    }
}

/// The text of one notification: a JSON array, of no more than PostgreSQL takes.
#[derive(Default)]
struct Text {
    items: String,
}

impl Text {
    /// Adds an item; answers `false` if it does not fit beside the others. One that fits into none is found by looking.
    fn push(&mut self, item: String) -> bool {
        if !self.items.is_empty() && self.items.len() + item.len() + ",[]".len() > MAX_TEXT {
            return false;
        }
        if !self.items.is_empty() {
            self.items.push(',');
        }
        self.items.push_str(&item);
        true
    }

    fn finish(self) -> Option<String> {
        (!self.items.is_empty()).then(|| format!("[{}]", self.items))
    }
}

async fn notify(connection: &Connection, text: &str) -> Result<(), Failure> {
    connection.query("SELECT pg_notify($1, $2)", &[(&CHANNEL, Type::TEXT), (&text, Type::TEXT)]).await.map(drop)
}

#[cfg(test)]
mod tests {
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
            // Of the version before.
            (r#"[{"n":"one","t":"default","d":"b","at":7}]"#, vec![due(Class::First), due(Class::Retry)]),
            // Of redrive.enqueue.
            (r#"[{"t":"default","d":"b","at":7}]"#, vec![due(Class::First)]),
            // Of a later version.
            (r#"[{"n":"one","t":"default","d":"b","at":7,"c":9}]"#, vec![]),
            (r#"[{"n":"one","t":"default","x":"no task"}]"#, vec![]),
            ("[{}]", vec![]),
        ] {
            assert_eq!(hear(payload), expected, "{payload}");
        }
    }

    #[test]
    fn what_is_told_is_heard_in_notifications_that_postgres_takes() {
        let news = News::new("one", Floors::new(QUIET_FOR..=QUIET_FOR));
        let lane = |n: u64| Lane {
            tenant: TenantId::default_tenant(),
            dependency: Dependency::try_new(format!("https://{n}.example")).unwrap(),
        };
        let id = |n| TaskId::from_parts(n, 7);
        for n in 0..200 {
            news.tell(&lane(n), Class::Retry, Timestamp::from_millis(n));
            news.tell_cancel(TenantId::default_tenant(), id(n));
        }
        let (mut dues, mut cancels) = (0, 0);
        while let Some(Saying { text, .. }) = news.next_cancels().or_else(|| news.next_lanes()) {
            assert!(text.len() <= MAX_TEXT, "{}", text.len());
            let heard = hear(&text);
            let is_due = |heard: &Announcement| matches!(heard, Announcement::Due(due) if due.class == Class::Retry);
            assert!(heard.iter().all(is_due) || !heard.iter().any(is_due), "one kind in each: {text}");
            dues += heard.iter().filter(|heard| is_due(heard)).count();
            cancels += heard.iter().filter(|heard| !is_due(heard)).count();
        }
        assert_eq!((dues, cancels), (200, 200));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_again_too_soon_is_said_when_the_quiet_time_is_over() {
        let (news, lane) = (News::new("one", Floors::new(QUIET_FOR..=QUIET_FOR)), lane_of("a"));
        news.tell(&lane, Class::First, Timestamp::from_millis(7));
        assert!(news.next_lanes().is_some());
        // Whoever heard of it may have found nothing more, and forgotten it.
        news.tell(&lane, Class::First, Timestamp::from_millis(8));
        assert!(news.next_lanes().is_none());
        tokio::time::advance(QUIET_FOR).await;
        assert!(news.next_lanes().is_some());
        assert!(news.next_lanes().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_said_is_said_again() {
        let (news, lane) = (News::new("one", Floors::new(QUIET_FOR..=QUIET_FOR)), lane_of("a"));
        news.tell(&lane, Class::First, Timestamp::from_millis(7));
        news.tell_cancel(TenantId::default_tenant(), TaskId::from_parts(7, 7));
        for say in [News::next_cancels, News::next_lanes] {
            let saying = say(&news).unwrap();
            assert!(say(&news).is_none());
            news.not_said(saying);
            assert!(say(&news).is_some());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_another_process_has_told_is_not_told_again_at_once() {
        let (news, lane) = (News::new("two", Floors::new(QUIET_FOR..=QUIET_FOR)), lane_of("a"));
        news.tell(&lane, Class::First, Timestamp::from_millis(7));
        news.pass_on(r#"[{"n":"one","t":"default","d":"a","at":7,"c":0}]"#);
        assert!(news.next_lanes().is_none());
        assert!(news.unsaid().lanes.is_empty());
    }

    fn lane_of(dependency: &str) -> Lane {
        Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new(dependency).unwrap() }
    }
}
