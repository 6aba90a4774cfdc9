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
        self.has_late_answer(limit, |_| true)
    }

    /// Whether the caller has read nothing for `limit` of an answer that has no end of its own.
    pub(crate) fn ignores_stream_for(&self, limit: Duration) -> bool {
        self.has_late_answer(limit, |exchange| exchange.is_endless.load(Ordering::Relaxed))
    }

    fn has_late_answer(&self, limit: Duration, counts: impl Fn(&Exchange) -> bool) -> bool {
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let now = self.uptime.millis();
        // An exchange that ends here must not do so while the list is locked.
        let answers: Vec<_> = self.answers().iter().filter_map(Weak::upgrade).collect();
        answers.into_iter().any(|exchange| counts(&exchange) && exchange.is_late(now, limit))
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
    /// When the caller last read a part of the answer, or was given one after it had read all, by [`Uptime`].
    taken_at: AtomicU64,
    /// Pieces of the answer that the caller has not read yet.
    unread: AtomicUsize,
    /// Whether the caller waits for the next piece of the answer, which is not there yet.
    is_producing: AtomicBool,
    /// Whether the answer has no end of its own.
    is_endless: AtomicBool,
}

impl Exchange {
    /// Starts the exchange of a request whose head is complete.
    pub(crate) fn begin(peer: Arc<Peer>) -> Arc<Self> {
        peer.head_is_complete();
        peer.exchanges.fetch_add(1, Ordering::Relaxed);
        peer.working.fetch_add(1, Ordering::Relaxed);
        let charge = Charge::new(peer.budget.clone());
        Arc::new(Exchange {
            charge,
            peer,
            is_handled: AtomicBool::new(false),
            taken_at: AtomicU64::new(0),
            unread: AtomicUsize::new(0),
            is_producing: AtomicBool::new(false),
            is_endless: AtomicBool::new(false),
        })
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
        self.note_time();
        let mut answers = self.peer.answers();
        if answers.len() == answers.capacity() {
            answers.retain(|answer| answer.strong_count() > 0);
        }
        answers.push(Arc::downgrade(self));
    }

    /// The answer has no end of its own: it ends when either side has enough.
    pub(crate) fn has_no_end(&self) {
        self.is_endless.store(true, Ordering::Relaxed);
    }

    /// A piece of the answer is there for the caller.
    pub(crate) fn offered(&self) {
        if self.unread.fetch_add(1, Ordering::Relaxed) == 0 {
            self.note_time();
        }
        if self.is_producing.swap(false, Ordering::Relaxed) {
            self.peer.begins_to_wait();
            self.peer.working.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The caller has read a piece of the answer.
    pub(crate) fn taken(&self) {
        self.note_time();
        self.unread.fetch_sub(1, Ordering::Relaxed);
    }

    /// The next piece of the answer is not there yet: the caller waits for the server.
    pub(crate) fn produces(&self) {
        if !self.is_producing.swap(true, Ordering::Relaxed) {
            self.peer.working.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the caller has read nothing since `limit` milliseconds ago, although there was something to read.
    fn is_late(&self, now: u64, limit: u64) -> bool {
        let waits_for_server = self.is_producing.load(Ordering::Relaxed) && self.unread.load(Ordering::Relaxed) == 0;
        !waits_for_server && now.saturating_sub(self.taken_at.load(Ordering::Relaxed)) >= limit
    }

    fn note_time(&self) {
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
        if *self.is_producing.get_mut() {
            self.peer.working.fetch_sub(1, Ordering::Relaxed);
        }
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
        exchange.offered();
        exchange.taken();
        tokio::time::advance(limit - Duration::from_millis(1)).await;
        assert!(!peer.reads_nothing_for(limit));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(peer.reads_nothing_for(limit));
        drop(exchange);
        assert!(!peer.reads_nothing_for(limit));
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_has_read_all_there_is_is_not_late_and_the_server_has_its_turn() {
        let (_, peer) = peer();
        let limit = Duration::from_secs(30);
        let exchange = Exchange::begin(peer.clone());
        exchange.answered();
        exchange.offered();
        // Asked for more before the first piece was written.
        exchange.produces();
        exchange.produces();
        assert_eq!(peer.activity(), Activity::Working);
        tokio::time::advance(limit).await;
        assert!(peer.reads_nothing_for(limit), "it has not read the first piece");
        assert!(!peer.ignores_stream_for(limit), "its answer has an end");
        exchange.has_no_end();
        assert!(peer.ignores_stream_for(limit));
        exchange.taken();
        tokio::time::advance(limit * 9).await;
        assert!(!peer.reads_nothing_for(limit), "there is nothing to read");
        exchange.offered();
        assert_eq!(peer.activity(), Activity::Transferring);
        assert!(!peer.reads_nothing_for(limit), "it has just been given something");
        tokio::time::advance(limit).await;
        assert!(peer.reads_nothing_for(limit));
        exchange.produces();
        drop(exchange);
        assert_eq!(peer.activity(), Activity::Idle);
        assert_eq!(peer.working.load(Ordering::Relaxed), 0);
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
