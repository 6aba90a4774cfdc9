//! The open connections, and which of them is closed when there is no room for another.
//!
//! Idle callers must not keep out active ones. At the limit, the connections that have been idle the longest are
//! closed. If none has been idle for [`NEW_CONNECTION_GRACE`], the one that has kept the server waiting the longest is
//! closed, whether it is idle, sending a body or reading an answer. If the server works on all of them, a new
//! connection gets one of those that are reserved for health checks.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use super::peer::{Activity, Peer, Purpose};

/// The connections that are reserved for health checks, beyond `max_connections`.
pub(super) const HEALTH_CONNECTIONS: usize = 64;
/// The share of all connections that is closed at once if idle: finding them looks at every connection.
const CLEARED_PART: usize = 64;

/// The share of the open connections that is closed at once when the process has no file descriptor left.
const FREED_PART: usize = 16;

/// How long an idle connection counts as new: its first request may be on its way.
const NEW_CONNECTION_GRACE: Duration = Duration::from_secs(1);

/// The least time before a connection is closed for another one. Callers that connect faster wait to be accepted:
/// otherwise a caller that keeps connecting would leave the others no time to send a request.
const MIN_STAY: Duration = Duration::from_millis(50);

/// How long a stop waits for callers that read nothing of a stream that has no end of its own.
const STREAM_PATIENCE: Duration = Duration::from_secs(1);

/// How often a stop looks for such callers.
const STREAM_LOOK: Duration = Duration::from_millis(100);

/// The open connections.
pub(super) struct Connections {
    most: usize,
    /// The number of open connections, for others to read.
    count: Arc<AtomicUsize>,
    tasks: JoinSet<()>,
    open: HashMap<Id, OpenConnection>,
}

struct OpenConnection {
    peer: Arc<Peer>,
    task: AbortHandle,
}

/// A connection on which the server waits for the caller.
struct WaitingConnection {
    id: Id,
    activity: Activity,
    time: Duration,
}

impl Connections {
    /// No connections yet, at most `most` at once.
    pub(super) fn new(most: usize) -> Self {
        Connections { most, count: Arc::default(), tasks: JoinSet::new(), open: HashMap::new() }
    }

    /// The number of open connections is kept here from now on.
    pub(super) fn counted_in(self, count: Arc<AtomicUsize>) -> Self {
        Connections { count, ..self }
    }

    /// How soon another connection can be accepted; nothing if one has to end first.
    #[expect(clippy::disallowed_methods, reason = "connections are not simulated: their order does not matter")]
    pub(super) fn room_within(&self) -> Option<Duration> {
        if self.open.len() < self.most {
            return Some(Duration::ZERO);
        }
        let waiting = self.open.values().filter(|open| open.peer.activity() != Activity::Working);
        match waiting.map(|open| open.peer.waited()).max() {
            Some(longest) => Some(MIN_STAY.saturating_sub(longest)),
            None => (self.open.len() < self.most.saturating_add(HEALTH_CONNECTIONS)).then_some(Duration::ZERO),
        }
    }

    /// Makes room for one more connection, by closing others if necessary. What the new one may be used for.
    pub(super) fn make_room(&mut self) -> Purpose {
        if self.open.len() >= self.most {
            self.close_idlest();
        }
        if self.open.len() < self.most { Purpose::Anything } else { Purpose::Health }
    }

    /// Serves a connection.
    pub(super) fn serve(&mut self, peer: Arc<Peer>, connection: impl Future<Output = ()> + Send + 'static) {
        let task = self.tasks.spawn(connection);
        self.open.insert(task.id(), OpenConnection { peer, task });
        self.note_count();
    }

    /// Ends when a connection has ended; never if there is none.
    pub(super) async fn ended(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(ended) => {
                let id = ended.as_ref().map_or_else(JoinError::id, |(id, ())| *id);
                self.open.remove(&id);
                self.note_count();
                log_panic(ended.map(|_| ()));
            }
            None => std::future::pending().await,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Closes connections on which the server waits for the caller, idle ones first. The number closed.
    pub(super) fn close_idlest(&mut self) -> usize {
        let waiting = self.waiting();
        let is_old =
            |waits: &&WaitingConnection| waits.activity == Activity::Idle && waits.time >= NEW_CONNECTION_GRACE;
        let most = (self.most / CLEARED_PART).max(1);
        let mut idlest: Vec<Id> = waiting.iter().filter(is_old).take(most).map(|waits| waits.id).collect();
        if idlest.is_empty() {
            idlest.extend(waiting.first().map(|waits| waits.id));
        }
        self.close_all(&idlest)
    }

    /// Closes a part of the connections, those that have kept the server waiting the longest, because the process has
    /// no file descriptor left. The number closed. Closing them one by one would be slower than new ones arrive.
    pub(super) fn close_for_files(&mut self) -> usize {
        let most = (self.open.len() / FREED_PART).max(1);
        let longest: Vec<Id> = self.waiting().iter().take(most).map(|waits| waits.id).collect();
        self.close_all(&longest)
    }

    fn close_all(&mut self, ids: &[Id]) -> usize {
        for id in ids {
            self.close(*id);
        }
        if !ids.is_empty() {
            let (closed, open) = (ids.len(), self.open.len());
            tracing::debug!(closed, open, "closed the idlest connections to make room");
        }
        ids.len()
    }

    /// Closes the connections whose caller has read nothing of an answer for `limit`.
    #[expect(clippy::disallowed_methods, reason = "connections are not simulated: their order does not matter")]
    pub(super) fn close_stalled(&mut self, limit: Duration) {
        let stalled: Vec<Id> =
            self.open.iter().filter(|(_, open)| open.peer.reads_nothing_for(limit)).map(|(id, _)| *id).collect();
        for id in &stalled {
            self.close(*id);
        }
        if !stalled.is_empty() {
            tracing::debug!(closed = stalled.len(), "closed connections whose callers do not read their answers");
        }
    }

    /// Waits for the connections to finish, and closes those that do not in time.
    #[expect(clippy::disallowed_methods, reason = "connections live on the machine's clock")]
    pub(super) async fn drain(mut self, within: Duration) {
        let all_ended = async {
            let mut looks = tokio::time::interval(STREAM_LOOK);
            loop {
                tokio::select! {
                    ended = self.tasks.join_next() => match ended {
                        Some(ended) => log_panic(ended),
                        None => return,
                    },
                    _ = looks.tick() => close_ignored_streams(&self.open),
                }
            }
        };
        if tokio::time::timeout(within, all_ended).await.is_err() {
            tracing::warn!(connections = self.tasks.len(), "ending connections that did not finish in time");
            self.tasks.shutdown().await;
        }
    }

    /// The connections on which the server waits for the caller, longest wait first.
    #[expect(clippy::disallowed_methods, reason = "connections are not simulated: their order does not matter")]
    fn waiting(&self) -> Vec<WaitingConnection> {
        let all = self.open.iter().map(|(id, open)| WaitingConnection {
            id: *id,
            activity: open.peer.activity(),
            time: open.peer.waited(),
        });
        let mut waiting: Vec<_> = all.filter(|waiting| waiting.activity != Activity::Working).collect();
        waiting.sort_unstable_by_key(|waits| Reverse(waits.time));
        waiting
    }

    fn close(&mut self, id: Id) {
        if let Some(open) = self.open.remove(&id) {
            open.task.abort();
            self.note_count();
        }
    }

    fn note_count(&self) {
        self.count.store(self.open.len(), Ordering::Relaxed);
    }
}

/// Closes the connections whose callers do not read the end of a stream: a stop does not wait for them.
#[expect(clippy::disallowed_methods, reason = "connections are not simulated: their order does not matter")]
fn close_ignored_streams(open: &HashMap<Id, OpenConnection>) {
    for connection in open.values().filter(|connection| connection.peer.ignores_stream_for(STREAM_PATIENCE)) {
        connection.task.abort();
    }
}

fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection panicked");
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::Memory;
    use super::super::peer::{Exchange, Uptime};
    use super::*;

    /// Three connections, in the order in which their callers were last heard of.
    async fn three() -> (Connections, [Arc<Peer>; 3]) {
        let (mut connections, uptime) = (Connections::new(3), Uptime::begin());
        let mut peers = Vec::new();
        for _ in 0..3 {
            assert_eq!(connections.make_room(), Purpose::Anything);
            let peer = Peer::new(Memory::new(1 << 20), uptime, Purpose::Anything);
            connections.serve(peer.clone(), std::future::pending());
            peers.push(peer);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        (connections, peers.try_into().unwrap())
    }

    #[expect(clippy::disallowed_methods, reason = "the order does not matter")]
    fn is_open(connections: &Connections, peer: &Arc<Peer>) -> bool {
        connections.open.values().any(|open| Arc::ptr_eq(&open.peer, peer))
    }

    #[tokio::test(start_paused = true)]
    async fn the_idlest_is_closed_first_then_the_slowest_and_none_that_is_being_served() {
        let (mut connections, [first, second, third]) = three().await;
        let slow = Exchange::begin(first.clone());
        slow.answered();
        let worked_on = Exchange::begin(third.clone());
        assert_eq!(connections.make_room(), Purpose::Anything);
        assert_eq!([&first, &second, &third].map(|peer| is_open(&connections, peer)), [true, false, true]);

        let newcomer = Peer::new(Memory::new(1 << 20), Uptime::begin(), Purpose::Anything);
        connections.serve(newcomer.clone(), std::future::pending());
        let asks = Exchange::begin(newcomer);
        assert_eq!(connections.make_room(), Purpose::Anything);
        assert_eq!([&first, &third].map(|peer| is_open(&connections, peer)), [false, true]);

        let another = Peer::new(Memory::new(1 << 20), Uptime::begin(), Purpose::Anything);
        connections.serve(another.clone(), std::future::pending());
        let asks_too = Exchange::begin(another);
        assert_eq!(connections.make_room(), Purpose::Health);
        drop((slow, worked_on, asks, asks_too));
        assert_eq!(connections.make_room(), Purpose::Anything);
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_is_not_closed_before_its_request_can_arrive() {
        let (mut connections, [first, second, third]) = three().await;
        connections.most = 4;
        let bodies = [first, second, third].map(Exchange::begin);
        let _endless = bodies.each_ref().map(|body| body.wait_for_caller());
        tokio::time::advance(Duration::from_millis(1)).await;
        let newcomer = Peer::new(Memory::new(1 << 20), Uptime::begin(), Purpose::Anything);
        connections.serve(newcomer.clone(), std::future::pending());
        for left in [3, 2] {
            assert_eq!(connections.close_idlest(), 1);
            assert_eq!(
                (connections.open.len(), is_open(&connections, &newcomer)),
                (left, true),
                "bodies wait for longer"
            );
        }
        tokio::time::advance(NEW_CONNECTION_GRACE).await;
        assert_eq!(connections.close_idlest(), 1);
        assert_eq!((connections.open.len(), is_open(&connections, &newcomer)), (1, false), "it is new no longer");
    }

    #[tokio::test(start_paused = true)]
    async fn callers_that_come_too_fast_wait_until_others_had_their_time() {
        let (mut connections, [first, ..]) = three().await;
        connections.most = 3;
        let stayed = first.waited();
        assert!(stayed < MIN_STAY);
        assert_eq!(connections.room_within(), Some(MIN_STAY - stayed));
        tokio::time::advance(MIN_STAY).await;
        assert_eq!(connections.room_within(), Some(Duration::ZERO));
        connections.most = 4;
        assert_eq!(connections.room_within(), Some(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_of_all_is_closed_for_files_and_never_the_newest() {
        let (mut connections, uptime) = (Connections::new(100), Uptime::begin());
        let mut peers = Vec::new();
        for _ in 0..4 * FREED_PART {
            let peer = Peer::new(Memory::new(1 << 20), uptime, Purpose::Anything);
            connections.serve(peer.clone(), std::future::pending());
            peers.push(peer);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(connections.close_for_files(), 4);
        let open = peers.iter().map(|peer| is_open(&connections, peer)).collect::<Vec<_>>();
        assert_eq!(open.iter().position(|is_open| *is_open), Some(4), "the longest waiting are closed");
        assert_eq!(connections.open.len(), 4 * FREED_PART - 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_was_closed_has_ended() {
        let (mut connections, [first, ..]) = three().await;
        assert_eq!(connections.close_idlest(), 1);
        assert!(!is_open(&connections, &first));
        connections.ended().await;
        assert_eq!((connections.open.len(), connections.tasks.len()), (2, 2));
    }
}
