//! News between processes: announces due tasks that other processes may claim, and receives their announcements.
//!
//! News of due tasks are published over Redis, at most one message per [`SAID_EVERY`], after the tasks are in the
//! index. They are hints: if one is lost, the next scan of the store finds the tasks. The same holds for cancels of
//! tasks in flight and changes of guards, which a store behind a transaction pooler cannot announce itself. News from the
//! store is passed on as well.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::PubSub;
use redrive_core::{Class, Lane, TaskId, TenantId, Timestamp};
use redrive_store::{LaneDue, News as Announcement};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::keys;
use crate::redis_call_error::RedisCallError;
use crate::schedule::{CALL_TIMEOUT, Queue};
use crate::script::Call;
use crate::state::State;

/// The time between two messages.
const SAID_EVERY: Duration = Duration::from_millis(20);
/// The most lines in one message.
const LINES_PER_MESSAGE: usize = 1_000;
/// The most classes of lanes, the most cancels, and the most lanes whose guards changed, that are queued for sending or
/// for the engine. Scans of the store find the others.
const LIMIT: usize = 10_000;
/// How long a connection may be silent before it is checked with a ping.
const PING_AFTER: Duration = Duration::from_secs(10);
/// The pause before connecting again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The announcements to send, and those that were received.
pub(crate) struct News {
    /// The name of this process, so that it skips its own messages.
    myself: String,
    to_say: Basket,
    heard: Basket,
}

/// Classes of lanes with the earliest announced due time of each, cancels of tasks in flight, and lanes whose guards
/// changed.
#[derive(Default)]
struct Basket {
    items: Mutex<Items>,
    filled: Notify,
}

#[derive(Default)]
struct Items {
    due: BTreeMap<Queue, Option<Timestamp>>,
    cancels: BTreeSet<(TenantId, TaskId)>,
    guards: BTreeSet<Lane>,
}

impl News {
    pub(crate) fn new() -> Self {
        News { myself: format!("{:016x}", fastrand::u64(..)), to_say: Basket::default(), heard: Basket::default() }
    }

    /// Announces due tasks to the other processes.
    pub(crate) fn say(&self, due: impl IntoIterator<Item = (Queue, Timestamp)>) {
        let due = due.into_iter().map(|((lane, class), due)| LaneDue { lane, class, next_due: Some(due) });
        self.to_say.put(due.map(Announcement::Due));
    }

    /// Announces a cancel of a task in flight to the other processes.
    pub(crate) fn announce_cancel(&self, tenant: TenantId, id: TaskId) {
        self.to_say.put([Announcement::CancelRequested(tenant, id)]);
    }

    /// Announces to the other processes that the guards of these lanes changed, or their controls.
    pub(crate) fn announce_guards(&self, lanes: impl IntoIterator<Item = Lane>) {
        self.to_say.put(lanes.into_iter().map(Announcement::GuardsChanged));
    }

    /// Passes received announcements on to the engine, from Redis or from the store.
    pub(crate) fn hear(&self, news: impl IntoIterator<Item = Announcement>) {
        self.heard.put(news);
    }

    /// Waits for received announcements and returns them.
    pub(crate) async fn heard(&self) -> Vec<Announcement> {
        self.heard.take().await
    }

    /// One line for each announcement, after one with the sender's name. Names contain no spaces or line breaks.
    fn write(&self, news: &[Announcement]) -> String {
        let line = |news: &Announcement| match news {
            Announcement::Due(LaneDue { lane, class, next_due }) => {
                let due = next_due.map_or_else(|| "-".to_owned(), |due| due.as_millis().to_string());
                format!("\n{due} {} {lane}", class.code())
            }
            Announcement::CancelRequested(tenant, id) => format!("\ncancel {tenant} {id}"),
            // Programs that do not know this line ignore it, because `-` is no class.
            Announcement::GuardsChanged(lane) => format!("\nguards - {lane}"),
        };
        format!("{}{}", self.myself, news.iter().map(line).collect::<String>())
    }

    /// The announcements of another process; empty if the message is from this process or invalid.
    fn read(&self, message: &str) -> Vec<Announcement> {
        let mut lines = message.lines();
        if lines.next() == Some(&self.myself) {
            return Vec::new();
        }
        lines.take(LINES_PER_MESSAGE).filter_map(read_line).collect()
    }
}

fn read_line(line: &str) -> Option<Announcement> {
    let (first, rest) = line.split_once(' ')?;
    let (second, third) = rest.split_once(' ')?;
    if first == "cancel" {
        return Some(Announcement::CancelRequested(TenantId::try_new(second).ok()?, third.parse().ok()?));
    }
    if first == "guards" {
        return keys::parse_lane(third).map(Announcement::GuardsChanged);
    }
    let next_due = first.parse().ok().map(Timestamp::from_millis);
    let class = Class::from_code(second.parse().ok()?)?;
    Some(Announcement::Due(LaneDue { lane: keys::parse_lane(third)?, class, next_due }))
}

impl Basket {
    fn put(&self, news: impl IntoIterator<Item = Announcement>) {
        let mut items = self.items();
        news.into_iter().for_each(|news| items.put(news));
        if !items.is_empty() {
            self.filled.notify_one();
        }
    }

    async fn take(&self) -> Vec<Announcement> {
        loop {
            let items = mem::take(&mut *self.items());
            if !items.is_empty() {
                let cancels = items.cancels.into_iter();
                let cancels = cancels.map(|(tenant, id)| Announcement::CancelRequested(tenant, id));
                let guards = items.guards.into_iter().map(Announcement::GuardsChanged);
                let due = items.due.into_iter();
                let due = due.map(|((lane, class), next_due)| LaneDue { lane, class, next_due });
                return cancels.chain(guards).chain(due.map(Announcement::Due)).collect();
            }
            self.filled.notified().await;
        }
    }

    fn items(&self) -> MutexGuard<'_, Items> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Items {
    fn put(&mut self, news: Announcement) {
        match news {
            Announcement::Due(LaneDue { lane, class, next_due }) => {
                let queue = (lane, class);
                if let Some(known) = self.due.get_mut(&queue) {
                    *known = [*known, next_due].into_iter().flatten().min();
                } else if self.due.len() < LIMIT {
                    self.due.insert(queue, next_due);
                }
            }
            Announcement::CancelRequested(tenant, id) => {
                if self.cancels.len() < LIMIT {
                    self.cancels.insert((tenant, id));
                }
            }
            Announcement::GuardsChanged(lane) => {
                if self.guards.len() < LIMIT {
                    self.guards.insert(lane);
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.due.is_empty() && self.cancels.is_empty() && self.guards.is_empty()
    }
}

/// Publishes queued announcements until it is aborted.
pub(crate) async fn keep_saying(state: Arc<State>) {
    let channel = state.schedule.keys.news();
    loop {
        let news = state.news.to_say.take().await;
        for news in news.chunks(LINES_PER_MESSAGE) {
            let call = Call::command("PUBLISH").arg(&channel).arg(state.news.write(news));
            if let Err(failure) = state.schedule.link.call_one(call, CALL_TIMEOUT).await {
                tracing::debug!(error = %failure, "telling others the news failed");
            }
        }
        sleep(SAID_EVERY).await;
    }
}

/// Receives announcements until it is aborted.
pub(crate) async fn keep_listening(state: Arc<State>) {
    loop {
        if let Err(failure) = listen(&state).await {
            tracing::debug!(error = %failure, "listening for news failed, trying again");
        }
        sleep(RETRY_AFTER).await;
    }
}

async fn listen(state: &State) -> Result<(), RedisCallError> {
    let mut connection: PubSub = state.schedule.link.connector.listen().await?;
    match timeout(CALL_TIMEOUT, connection.subscribe(state.schedule.keys.news())).await {
        Ok(subscribed) => subscribed?,
        Err(_) => return Err(RedisCallError::TimedOut(CALL_TIMEOUT)),
    }
    let (mut asking, mut messages) = connection.split();
    loop {
        match timeout(PING_AFTER, messages.next()).await {
            Ok(Some(message)) => state.news.hear(state.news.read(&message.get_payload::<String>()?)),
            Ok(None) => return Err(RedisCallError::Unconnected),
            Err(_) => match timeout(CALL_TIMEOUT, asking.ping::<redis::Value>()).await {
                Ok(answer) => drop(answer?),
                Err(_) => return Err(RedisCallError::TimedOut(CALL_TIMEOUT)),
            },
        }
    }
}

/// Passes news from the store on until it is aborted. Tasks that the index does not have are claimed from the store. Only
/// news of due tasks waits for Redis.
pub(crate) async fn keep_relaying(state: Arc<State>) {
    let Some(shared) = state.store.shared() else { return };
    loop {
        let (mut due, mut others) = (Vec::new(), Vec::new());
        for news in shared.next_news().await {
            match news {
                Announcement::Due(lane) => due.push(lane),
                Announcement::CancelRequested(..) | Announcement::GuardsChanged(_) => others.push(news),
            }
        }
        state.news.hear(others);
        state.look(&due).await;
        state.news.hear(due.into_iter().map(Announcement::Due));
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::Dependency;

    use super::*;

    fn lane(name: &str) -> Lane {
        Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new(name).unwrap() }
    }

    fn due(name: &str, class: Class, next_due: Option<u64>) -> Announcement {
        Announcement::Due(LaneDue { lane: lane(name), class, next_due: next_due.map(Timestamp::from_millis) })
    }

    fn guards(name: &str) -> Announcement {
        Announcement::GuardsChanged(lane(name))
    }

    fn cancel(number: u64) -> Announcement {
        Announcement::CancelRequested(TenantId::default_tenant(), TaskId::from_parts(number, 7))
    }

    #[test]
    fn what_one_says_the_other_hears_and_oneself_does_not() {
        let (one, other) = (News::new(), News::new());
        let due_later = due("https://a.example/x", Class::Retry, Some(7));
        let news = [due_later, cancel(3), guards("https://a.example/x"), due("b", Class::First, None)];
        let message = one.write(&news);
        assert_eq!(other.read(&message), news);
        assert_eq!(one.read(&message), []);
    }

    #[test]
    fn invalid_messages_are_ignored() {
        let news = News::new();
        for message in [
            "",
            "x",
            "x\n",
            "x\n7",
            "x\n7 ",
            "x\n7 0 nolane",
            "x\n7 9 t/a",
            "x\n7 t/a",
            "x\ncancel default 7",
            "x\nguards - nolane",
            "x\nguards default",
            // Of a later version.
            "x\nmoon - default/a",
            "\n\n\n",
        ] {
            assert_eq!(news.read(message), [], "{message:?}");
        }
        assert_eq!(news.read("x\n??\n7 1 default/a\n"), [due("a", Class::Retry, Some(7))]);
    }

    #[tokio::test]
    async fn news_of_one_class_of_a_lane_become_one() {
        let news = News::new();
        let (first, retry) = (Class::First, Class::Retry);
        news.hear([due("b", first, Some(9)), due("a", first, None), due("b", first, Some(3)), cancel(1)]);
        news.hear([due("a", first, Some(5)), guards("a"), due("b", retry, Some(8)), cancel(1), guards("a")]);
        let expected =
            [cancel(1), guards("a"), due("a", first, Some(5)), due("b", first, Some(3)), due("b", retry, Some(8))];
        assert_eq!(news.heard().await, expected);
    }
}
