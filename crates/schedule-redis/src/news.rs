//! News of due work: what this process made due and others may want to claim, and what others say of theirs.
//!
//! News are said over Redis, at most one message per [`SAID_EVERY`], after the work is in the index. They are hints: one
//! that is lost is made up for by the next look at the store.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::PubSub;
use redrive_core::{Lane, Timestamp};
use redrive_store::LaneDue;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::failure::Failure;
use crate::keys;
use crate::schedule::CALL_TIMEOUT;
use crate::script::Call;
use crate::state::State;

/// The time between two messages.
const SAID_EVERY: Duration = Duration::from_millis(20);
/// The most lanes in one message.
const LANES_PER_MESSAGE: usize = 1_000;
/// The most lanes that wait to be said or heard. Looks at the store find the others.
const LIMIT: usize = 10_000;
/// How long a connection may be silent before it is asked whether it still lives.
const PING_AFTER: Duration = Duration::from_secs(10);
/// The wait before connecting again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What this process has to say, and what it has heard.
pub(crate) struct News {
    /// This process, so that it does not listen to itself.
    myself: String,
    to_say: Basket,
    heard: Basket,
}

/// Lanes with the earliest due time that was said of each.
#[derive(Default)]
struct Basket {
    lanes: Mutex<BTreeMap<Lane, Option<Timestamp>>>,
    filled: Notify,
}

impl News {
    pub(crate) fn new() -> Self {
        News { myself: format!("{:016x}", fastrand::u64(..)), to_say: Basket::default(), heard: Basket::default() }
    }

    /// Tells the others of due work.
    pub(crate) fn say(&self, due: impl IntoIterator<Item = (Lane, Timestamp)>) {
        self.to_say.put(due.into_iter().map(|(lane, due)| (lane, Some(due))));
    }

    /// Passes on what was heard, over Redis or otherwise.
    pub(crate) fn hear(&self, lanes: impl IntoIterator<Item = LaneDue>) {
        self.heard.put(lanes.into_iter().map(|lane| (lane.lane, lane.next_due)));
    }

    /// What was heard, as soon as there is something.
    pub(crate) async fn heard(&self) -> Vec<LaneDue> {
        let lanes = self.heard.take().await;
        lanes.into_iter().map(|(lane, next_due)| LaneDue { lane, next_due }).collect()
    }

    /// One line for each lane, after one with the sender's name. Names have no spaces or line breaks in them.
    fn write(&self, lanes: &[(Lane, Option<Timestamp>)]) -> String {
        let line = |(lane, due): &(Lane, Option<Timestamp>)| match due {
            Some(due) => format!("\n{} {lane}", due.as_millis()),
            None => format!("\n- {lane}"),
        };
        format!("{}{}", self.myself, lanes.iter().map(line).collect::<String>())
    }

    /// What somebody else said; nothing if it was this process, or makes no sense.
    fn read(&self, message: &str) -> Vec<LaneDue> {
        let mut lines = message.lines();
        if lines.next() == Some(&self.myself) {
            return Vec::new();
        }
        let parse = |line: &str| {
            let (due, lane) = line.split_once(' ')?;
            let next_due = due.parse().ok().map(Timestamp::from_millis);
            Some(LaneDue { lane: keys::parse_lane(lane)?, next_due })
        };
        lines.take(LANES_PER_MESSAGE).filter_map(parse).collect()
    }
}

impl Basket {
    fn put(&self, lanes: impl IntoIterator<Item = (Lane, Option<Timestamp>)>) {
        let mut basket = self.lanes();
        for (lane, due) in lanes {
            if let Some(known) = basket.get_mut(&lane) {
                *known = [*known, due].into_iter().flatten().min();
            } else if basket.len() < LIMIT {
                basket.insert(lane, due);
            }
        }
        if !basket.is_empty() {
            self.filled.notify_one();
        }
    }

    async fn take(&self) -> BTreeMap<Lane, Option<Timestamp>> {
        loop {
            let lanes = mem::take(&mut *self.lanes());
            if !lanes.is_empty() {
                return lanes;
            }
            self.filled.notified().await;
        }
    }

    fn lanes(&self) -> MutexGuard<'_, BTreeMap<Lane, Option<Timestamp>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says what there is to say, until it is aborted.
pub(crate) async fn keep_saying(state: Arc<State>) {
    let channel = state.schedule.keys.news();
    loop {
        let lanes: Vec<_> = state.news.to_say.take().await.into_iter().collect();
        for lanes in lanes.chunks(LANES_PER_MESSAGE) {
            let call = Call::command("PUBLISH").arg(&channel).arg(state.news.write(lanes));
            if let Err(failure) = state.schedule.link.call_one(call, CALL_TIMEOUT).await {
                tracing::debug!(error = %failure, "telling others of due work failed");
            }
        }
        sleep(SAID_EVERY).await;
    }
}

/// Listens to what others say, until it is aborted.
pub(crate) async fn keep_listening(state: Arc<State>) {
    loop {
        if let Err(failure) = listen(&state).await {
            tracing::debug!(error = %failure, "listening for news failed, trying again");
        }
        sleep(RETRY_AFTER).await;
    }
}

async fn listen(state: &State) -> Result<(), Failure> {
    let mut connection: PubSub = state.schedule.link.connector.listen().await?;
    match timeout(CALL_TIMEOUT, connection.subscribe(state.schedule.keys.news())).await {
        Ok(subscribed) => subscribed?,
        Err(_) => return Err(Failure::TimedOut(CALL_TIMEOUT)),
    }
    let (mut asking, mut messages) = connection.split();
    loop {
        match timeout(PING_AFTER, messages.next()).await {
            Ok(Some(message)) => state.news.hear(state.news.read(&message.get_payload::<String>()?)),
            Ok(None) => return Err(Failure::Unconnected),
            Err(_) => match timeout(CALL_TIMEOUT, asking.ping::<redis::Value>()).await {
                Ok(answer) => drop(answer?),
                Err(_) => return Err(Failure::TimedOut(CALL_TIMEOUT)),
            },
        }
    }
}

/// Passes on what the store hears, until it is aborted. What the index does not know of is claimed from the store.
pub(crate) async fn keep_relaying(state: Arc<State>) {
    let Some(shared) = state.store.shared() else { return };
    loop {
        let lanes = shared.heard().await;
        state.look(&lanes).await;
        state.news.hear(lanes);
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::{Dependency, TenantId};

    use super::*;

    fn due(name: &str, next_due: Option<u64>) -> LaneDue {
        let lane = Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new(name).unwrap() };
        LaneDue { lane, next_due: next_due.map(Timestamp::from_millis) }
    }

    #[test]
    fn what_one_says_the_other_hears_and_oneself_does_not() {
        let (one, other) = (News::new(), News::new());
        let lanes = [due("https://a.example/x", Some(7)), due("b", None)];
        let message = one.write(&lanes.clone().map(|lane| (lane.lane, lane.next_due)));
        assert_eq!(other.read(&message), lanes);
        assert_eq!(one.read(&message), []);
    }

    #[test]
    fn what_makes_no_sense_is_not_heard() {
        let news = News::new();
        for message in ["", "x", "x\n", "x\n7", "x\n7 ", "x\n7 nolane", "\n\n\n"] {
            assert_eq!(news.read(message), [], "{message:?}");
        }
        assert_eq!(news.read("x\n??\n7 default/a\n"), [due("a", Some(7))]);
    }

    #[tokio::test]
    async fn news_of_one_lane_become_one() {
        let news = News::new();
        news.hear([due("b", Some(9)), due("a", None), due("b", Some(3)), due("a", Some(5))]);
        assert_eq!(news.heard().await, [due("a", Some(5)), due("b", Some(3))]);
    }
}
