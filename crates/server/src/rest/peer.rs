//! One connection: the memory that it holds, and whether the server works or waits for the caller.
//!
//! An [`Exchange`] is one request and its answer, from the head's last byte until the answer's last byte is handed to
//! the socket. It holds the memory of both, and records when the caller last read something.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::memory::{Charge, ChargeMode, ConnectionBudget, Memory, MemoryExhausted};

/// The bytes of a head that are not counted: connections are bounded by their number, and a health check must be
/// readable even when the memory is used up.
const UNCOUNTED_HEAD: usize = 8 * 1024;
/// The most bytes that are buffered before a head is complete: more bytes than that were processed already, such as the
/// pings of an HTTP/2 connection.
pub(crate) const MOST_HEAD: usize = 64 * 1024;

/// Milliseconds since the server started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Uptime(Instant);

impl Uptime {
    pub(crate) fn begin() -> Self {
        Uptime(Instant::now())
    }

    pub(crate) fn millis(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// What a connection may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Any request.
    Anything,
    /// Health checks only: it is one of the connections that are reserved for them.
    Health,
}

/// What happens on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// The caller has not sent a complete head.
    Idle,
    /// The caller sends a body or reads an answer.
    Transferring,
    /// The server works on a request.
    Working,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) purpose: Purpose,
    budget: Arc<ConnectionBudget>,
    uptime: Uptime,
    exchanges: AtomicUsize,
    /// Exchanges that the server works on.
    working: AtomicUsize,
    /// When the server last began to wait for the caller, by [`Uptime`].
    waits_since: AtomicU64,
    /// Bytes that have arrived since the last head was complete.
    head_bytes: AtomicUsize,
    head: Charge,
    /// Exchanges whose answers are being read by the caller.
    answers: Mutex<Vec<Weak<Exchange>>>,
}

impl Peer {
    pub(crate) fn new(memory: Arc<Memory>, uptime: Uptime, purpose: Purpose) -> Arc<Self> {
        let budget = ConnectionBudget::new(memory);
        Arc::new(Peer {
            purpose,
            // Thousands of heads that are never completed must not keep out small requests.
            head: Charge::large(budget.clone()),
            budget,
            uptime,
            exchanges: AtomicUsize::new(0),
            working: AtomicUsize::new(0),
            waits_since: AtomicU64::new(uptime.millis()),
            head_bytes: AtomicUsize::new(0),
            answers: Mutex::default(),
        })
    }

    /// What happens on the connection now.
    pub(crate) fn activity(&self) -> Activity {
        if self.exchanges.load(Ordering::Relaxed) == 0 {
            Activity::Idle
        } else if self.working.load(Ordering::Relaxed) == 0 {
            Activity::Transferring
        } else {
            Activity::Working
        }
    }

    /// How long the server has been waiting for the caller; only meaningful while it is not working.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_millis(self.uptime.millis().saturating_sub(self.waits_since.load(Ordering::Relaxed)))
    }

    /// Whether the caller has read nothing of an answer for `limit`.
    pub(crate) fn reads_nothing_for(&self, limit: Duration) -> bool {
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let now = self.uptime.millis();
        let is_late = |exchange: Arc<Exchange>| now.saturating_sub(exchange.taken_at.load(Ordering::Relaxed)) >= limit;
        // An exchange that ends here must not do so while the list is locked.
        let answers: Vec<_> = self.answers().iter().filter_map(Weak::upgrade).collect();
        answers.into_iter().any(is_late)
    }

    /// Counts bytes that have arrived. Those of a body are counted where it is read.
    pub(crate) fn arrived(&self, bytes: usize) -> Result<(), MemoryExhausted> {
        if self.exchanges.load(Ordering::Relaxed) > 0 {
            return Ok(());
        }
        let head = self.head_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        match head.min(MOST_HEAD).checked_sub(UNCOUNTED_HEAD) {
            Some(counted) if counted > 0 => self.head.head(counted, ChargeMode::IfRoom),
            _ => Ok(()),
        }
    }

    /// A head is complete: from here its exchange counts it.
    fn head_is_complete(&self) {
        if self.head_bytes.swap(0, Ordering::Relaxed) > UNCOUNTED_HEAD
            && let Err(error) = self.head.head(0, ChargeMode::Always)
        {
            tracing::error!(%error, "releasing the memory of a head");
        }
    }

    fn begins_to_wait(&self) {
        self.waits_since.store(self.uptime.millis(), Ordering::Relaxed);
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, Vec<Weak<Exchange>>> {
        // Nothing panics while it is locked.
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request and its answer.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) charge: Charge,
    peer: Arc<Peer>,
    is_handled: AtomicBool,
    /// When the caller last read a part of the answer, by [`Uptime`].
    taken_at: AtomicU64,
}

impl Exchange {
    /// Starts the exchange of a request whose head is complete.
    pub(crate) fn begin(peer: Arc<Peer>) -> Arc<Self> {
        peer.head_is_complete();
        peer.exchanges.fetch_add(1, Ordering::Relaxed);
        peer.working.fetch_add(1, Ordering::Relaxed);
        let charge = Charge::new(peer.budget.clone());
        Arc::new(Exchange { charge, peer, is_handled: AtomicBool::new(false), taken_at: AtomicU64::new(0) })
    }

    /// What its connection may be used for.
    pub(crate) fn purpose(&self) -> Purpose {
        self.peer.purpose
    }

    /// The server waits for bytes of the body for as long as the returned value lives.
    pub(crate) fn wait_for_caller(&self) -> WaitForCaller<'_> {
        self.peer.begins_to_wait();
        self.peer.working.fetch_sub(1, Ordering::Relaxed);
        WaitForCaller(self)
    }

    /// The answer is ready: from now on the caller is expected to read it.
    pub(crate) fn answered(self: &Arc<Self>) {
        self.handled();
        self.taken();
        let mut answers = self.peer.answers();
        if answers.len() == answers.capacity() {
            answers.retain(|answer| answer.strong_count() > 0);
        }
        answers.push(Arc::downgrade(self));
    }

    /// The caller has read a part of the answer.
    pub(crate) fn taken(&self) {
        self.taken_at.store(self.peer.uptime.millis(), Ordering::Relaxed);
    }

    fn handled(&self) {
        if !self.is_handled.swap(true, Ordering::Relaxed) {
            self.peer.begins_to_wait();
            self.peer.working.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.handled();
        self.peer.begins_to_wait();
        self.peer.exchanges.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The server waits for bytes of a body.
pub(crate) struct WaitForCaller<'a>(&'a Exchange);

impl Drop for WaitForCaller<'_> {
    fn drop(&mut self) {
        self.0.peer.working.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> (Arc<Memory>, Arc<Peer>) {
        let memory = Memory::new(1024 * 1024);
        (memory.clone(), Peer::new(memory, Uptime::begin(), Purpose::Anything))
    }

    #[tokio::test(start_paused = true)]
    async fn the_turn_goes_from_the_caller_to_the_server_and_back() {
        let (_, peer) = peer();
        let millis = Duration::from_millis;
        tokio::time::advance(millis(5)).await;
        assert_eq!((peer.activity(), peer.waited()), (Activity::Idle, millis(5)));
        let exchange = Exchange::begin(peer.clone());
        assert_eq!(peer.activity(), Activity::Working);
        let waiting = exchange.wait_for_caller();
        tokio::time::advance(millis(2)).await;
        assert_eq!((peer.activity(), peer.waited()), (Activity::Transferring, millis(2)));
        drop(waiting);
        assert_eq!(peer.activity(), Activity::Working);
        tokio::time::advance(millis(5)).await;
        exchange.answered();
        tokio::time::advance(millis(3)).await;
        assert_eq!((peer.activity(), peer.waited()), (Activity::Transferring, millis(3)));
        drop(exchange);
        assert_eq!((peer.activity(), peer.waited()), (Activity::Idle, millis(0)));
        // One whose handler is dropped half-way.
        drop(Exchange::begin(peer.clone()));
        assert_eq!(peer.activity(), Activity::Idle);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_takes_nothing_is_found_out() {
        let (_, peer) = peer();
        let limit = Duration::from_secs(30);
        let exchange = Exchange::begin(peer.clone());
        tokio::time::advance(limit * 2).await;
        assert!(!peer.reads_nothing_for(limit), "the server has not answered");
        exchange.answered();
        tokio::time::advance(limit - Duration::from_millis(1)).await;
        assert!(!peer.reads_nothing_for(limit));
        exchange.taken();
        tokio::time::advance(limit - Duration::from_millis(1)).await;
        assert!(!peer.reads_nothing_for(limit));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(peer.reads_nothing_for(limit));
        drop(exchange);
        assert!(!peer.reads_nothing_for(limit));
    }

    #[tokio::test]
    async fn the_bytes_of_a_head_that_is_not_complete_are_counted() {
        let (memory, peer) = peer();
        peer.arrived(UNCOUNTED_HEAD).unwrap();
        assert_eq!(memory.held(), 0);
        peer.arrived(1_000).unwrap();
        assert_eq!(memory.held(), 1_000);
        let exchange = Exchange::begin(peer.clone());
        peer.arrived(100_000).unwrap();
        assert_eq!(memory.held(), 0);
        drop(exchange);
        // No more is buffered than a head may have.
        peer.arrived(1024 * 1024).unwrap();
        assert_eq!(memory.held(), MOST_HEAD - UNCOUNTED_HEAD);
    }

    #[tokio::test]
    async fn heads_that_are_not_complete_leave_the_part_for_small_requests_alone() {
        let (memory, _) = peer();
        let uptime = Uptime::begin();
        let peers: Vec<_> = (0..100).map(|_| Peer::new(memory.clone(), uptime, Purpose::Anything)).collect();
        let refused = peers.iter().filter(|peer| peer.arrived(MOST_HEAD).is_err()).count();
        assert_eq!((refused, memory.held()), (87, 13 * (MOST_HEAD - UNCOUNTED_HEAD)));
        // A head of the usual size is read all the same, and its request has room.
        let newcomer = Peer::new(memory.clone(), uptime, Purpose::Anything);
        newcomer.arrived(UNCOUNTED_HEAD).unwrap();
        Exchange::begin(newcomer).charge.grow(60_000).unwrap();
    }
}
