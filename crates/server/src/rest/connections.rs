//! The open connections, and which of them is closed when there is no room for another.
//!
//! A caller that does nothing must not keep out one that does. When all places are taken, the connections that have been
//! idle the longest are closed; if none has been idle for [`NEWCOMER`], whoever has kept the server waiting the longest, be it
//! idle, sending a body or taking an answer. If the server works on every one of them, a newcomer gets one of the
//! places that are kept for health checks.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use super::peer::{Peer, Purpose, Turn};

/// The places that are kept for health checks, beyond `max_connections`.
pub(super) const HEALTH_PLACES: usize = 64;
/// The part of all places that is cleared at once of idle connections: finding them takes a look at each connection.
const CLEARED_PART: usize = 64;

/// The part of the open connections that is closed at once when the process may have no further file.
const FREED_PART: usize = 16;

/// How long an idle connection counts as new: its request may be on its way.
const NEWCOMER: Duration = Duration::from_secs(1);

/// How long a caller has at least before its connection is closed for another one. Callers that come faster than that wait to be
/// accepted: else whoever connects again and again would leave nobody the time to send a request.
const LEAST_STAY: Duration = Duration::from_millis(50);

/// The open connections.
pub(super) struct Connections {
    most: usize,
    tasks: JoinSet<()>,
    open: HashMap<Id, Open>,
}

struct Open {
    peer: Arc<Peer>,
    task: AbortHandle,
}

/// A connection on which it is the caller's turn.
struct Waiting {
    id: Id,
    turn: Turn,
    time: Duration,
}

impl Connections {
    /// None yet, and `most` at once.
    pub(super) fn new(most: usize) -> Self {
        Connections { most, tasks: JoinSet::new(), open: HashMap::new() }
    }

    /// How soon another connection can be taken; nothing if one has to end first.
    #[expect(clippy::disallowed_methods, reason = "connections are not simulated: their order does not matter")]
    pub(super) fn room_within(&self) -> Option<Duration> {
        if self.open.len() < self.most {
            return Some(Duration::ZERO);
        }
        let waiting = self.open.values().filter(|open| open.peer.turn() != Turn::Work);
        match waiting.map(|open| open.peer.waited()).max() {
            Some(longest) => Some(LEAST_STAY.saturating_sub(longest)),
            None => (self.open.len() < self.most.saturating_add(HEALTH_PLACES)).then_some(Duration::ZERO),
        }
    }

    /// A place for one more connection; closes others if need be.
    pub(super) fn make_room(&mut self) -> Purpose {
        if self.open.len() >= self.most {
            self.close_idlest();
        }
        if self.open.len() < self.most { Purpose::Anything } else { Purpose::Health }
    }

    /// Serves a connection.
    pub(super) fn serve(&mut self, peer: Arc<Peer>, connection: impl Future<Output = ()> + Send + 'static) {
        let task = self.tasks.spawn(connection);
        self.open.insert(task.id(), Open { peer, task });
    }

    /// Ends when a connection has ended; never if there is none.
    pub(super) async fn ended(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(ended) => {
                let id = ended.as_ref().map_or_else(JoinError::id, |(id, ())| *id);
                self.open.remove(&id);
                note(ended.map(|_| ()));
            }
            None => std::future::pending().await,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Closes connections that wait for their caller, idle ones first; how many.
    pub(super) fn close_idlest(&mut self) -> usize {
        let waiting = self.waiting();
        let is_old = |waits: &&Waiting| waits.turn == Turn::Idle && waits.time >= NEWCOMER;
        let most = (self.most / CLEARED_PART).max(1);
        let mut idlest: Vec<Id> = waiting.iter().filter(is_old).take(most).map(|waits| waits.id).collect();
        if idlest.is_empty() {
            idlest.extend(waiting.first().map(|waits| waits.id));
        }
        self.close_all(&idlest)
    }

    /// Closes a part of the connections, those that have kept the server waiting the longest, because the process may have no
    /// further file; how many. Closing them one by one would be slower than callers come.
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

    /// Closes the connections whose caller has taken nothing of an answer for `limit`.
    #[expect(clippy::disallowed_methods, reason = "connections are not simulated: their order does not matter")]
    pub(super) fn close_stalled(&mut self, limit: Duration) {
        let stalled: Vec<Id> =
            self.open.iter().filter(|(_, open)| open.peer.takes_nothing_for(limit)).map(|(id, _)| *id).collect();
        for id in &stalled {
            self.close(*id);
        }
        if !stalled.is_empty() {
            tracing::debug!(closed = stalled.len(), "closed connections whose callers do not read their answers");
        }
    }

    /// Lets the connections finish, and ends those that do not in time.
    #[expect(clippy::disallowed_methods, reason = "connections live on the machine's clock")]
    pub(super) async fn drain(mut self, within: Duration) {
        let all_ended = async {
            while let Some(ended) = self.tasks.join_next().await {
                note(ended);
            }
        };
        if tokio::time::timeout(within, all_ended).await.is_err() {
            tracing::warn!(connections = self.tasks.len(), "ending connections that did not finish in time");
            self.tasks.shutdown().await;
        }
    }

    /// The connections on which it is the caller's turn, those first that have kept the server waiting the longest.
    #[expect(clippy::disallowed_methods, reason = "connections are not simulated: their order does not matter")]
    fn waiting(&self) -> Vec<Waiting> {
        let all =
            self.open.iter().map(|(id, open)| Waiting { id: *id, turn: open.peer.turn(), time: open.peer.waited() });
        let mut waiting: Vec<_> = all.filter(|waiting| waiting.turn != Turn::Work).collect();
        waiting.sort_unstable_by_key(|waits| Reverse(waits.time));
        waiting
    }

    fn close(&mut self, id: Id) {
        if let Some(open) = self.open.remove(&id) {
            open.task.abort();
        }
    }
}

fn note(ended: Result<(), JoinError>) {
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
    async fn the_idlest_goes_first_then_the_slowest_and_nobody_who_is_worked_on() {
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
        tokio::time::advance(NEWCOMER).await;
        assert_eq!(connections.close_idlest(), 1);
        assert_eq!((connections.open.len(), is_open(&connections, &newcomer)), (1, false), "it is new no longer");
    }

    #[tokio::test(start_paused = true)]
    async fn callers_that_come_too_fast_wait_until_others_had_their_time() {
        let (mut connections, [first, ..]) = three().await;
        connections.most = 3;
        let stayed = first.waited();
        assert!(stayed < LEAST_STAY);
        assert_eq!(connections.room_within(), Some(LEAST_STAY - stayed));
        tokio::time::advance(LEAST_STAY).await;
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
