//! The bytes that requests and answers hold in memory: one budget for all of them.
//!
//! Why bytes and not requests: a request is 500 bytes or 32 MiB. Why bytes that have arrived and not `Content-Length`:
//! a caller may announce little and send much, or announce much and send nothing.
//!
//! | share | used by |
//! | --- | --- |
//! | a quarter | requests and answers of at most [`SMALL`] bytes only; an eighth of that for at most [`TINY`] only |
//! | the rest | all; small ones when the quarter is full |
//! | an eighth | the most that the bodies and answers of one connection may hold |
//!
//! Requests that do not fit are refused at once. If they waited, they would hold what they have sent so far.
//!
//! A [`Charge`] is the memory of one request, then of its answer, until the last byte is handed to the socket.
//! Not here: which connection is closed when there are too many (`connections`).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The largest request or answer that may use the share for small ones.
pub(crate) const SMALL: usize = 64 * 1024;
/// The part of the whole that only small requests and answers may use.
const SMALL_PART: usize = 4;
/// The largest request or answer, all that it takes included, that may use the last part of that part.
const TINY: usize = 16 * 1024;
/// The part of it that only those may use: a submission of 500 bytes has room overhead any number of 60 KiB.
const TINY_PART: usize = 8;
/// The part of the whole that one connection may hold.
const CONNECTION_PART: usize = 8;

/// The part of a body that its buffers take overhead it: sizes are rounded up, and the last buffer is not full.
const SLACK_PART: usize = 8;
/// The memory for processing a document, as a multiple of its bytes: the decoded copy, and the
/// answer that repeats parts of it.
const WORK: usize = 2;
/// The least memory for processing a document.
const LEAST_WORK: usize = 4 * 1024;

/// The budget of bytes that all requests and answers of one server budget.
#[derive(Debug)]
pub struct Memory {
    most: usize,
    pools: Mutex<Pools>,
    refusals: AtomicUsize,
}

#[derive(Debug, Default)]
struct Pools {
    small: usize,
    shared: usize,
    peak: usize,
}

/// The pool that counts the bytes of a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pool {
    Small,
    Shared,
}

/// Bytes, and the pool that counts them.
#[derive(Debug, Clone, Copy)]
struct PooledBytes {
    pool: Pool,
    bytes: usize,
}

/// Whether bytes may be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChargeMode {
    /// Refused when there is no room.
    IfRoom,
    /// Counted in any case: health checks, problems, and answers to completed writes.
    Always,
}

/// The memory for requests and answers is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MemoryExhausted {
    #[error("the memory for requests and answers is used up ({most} bytes, --max-api-memory); try again later")]
    Service { most: usize },
    #[error(
        "the memory for requests and answers of this connection is used up ({most} bytes, an eighth of --max-api-memory); \
         read the answers, or send fewer requests at once"
    )]
    Connection { most: usize },
}

impl Memory {
    /// A budget of `most` bytes.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Memory { most, pools: Mutex::default(), refusals: AtomicUsize::new(0) })
    }

    /// The bytes that are held now.
    pub fn held(&self) -> usize {
        let pools = self.pools();
        pools.small + pools.shared
    }

    /// The most bytes that were ever held at once.
    pub fn peak(&self) -> usize {
        self.pools().peak
    }

    /// The most bytes that one connection may hold.
    pub fn connection_most(&self) -> usize {
        self.most / CONNECTION_PART
    }

    /// How often there was no room since the last call.
    pub(crate) fn take_refusals(&self) -> usize {
        self.refusals.swap(0, Ordering::Relaxed)
    }

    /// Counts `bytes` instead of `held`, in the pool that fits.
    fn replace(
        &self,
        held: &mut PooledBytes,
        is_small: bool,
        bytes: usize,
        mode: ChargeMode,
    ) -> Result<(), MemoryExhausted> {
        let small_most = self.most / SMALL_PART;
        let mut pools = self.pools();
        pools.release(*held);
        let small_room = if bytes <= TINY { small_most } else { small_most - small_most / TINY_PART };
        let pool = if is_small && pools.small + bytes <= small_room {
            Pool::Small
        } else if pools.shared + bytes <= self.most - small_most {
            Pool::Shared
        } else if mode == ChargeMode::Always {
            if is_small { Pool::Small } else { Pool::Shared }
        } else {
            pools.take(*held);
            self.refusals.fetch_add(1, Ordering::Relaxed);
            return Err(MemoryExhausted::Service { most: self.most });
        };
        *held = PooledBytes { pool, bytes };
        pools.take(*held);
        Ok(())
    }

    fn pools(&self) -> MutexGuard<'_, Pools> {
        // Nothing panics while it is locked.
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pools {
    fn of(&mut self, pool: Pool) -> &mut usize {
        match pool {
            Pool::Small => &mut self.small,
            Pool::Shared => &mut self.shared,
        }
    }

    fn take(&mut self, held: PooledBytes) {
        *self.of(held.pool) += held.bytes;
        self.peak = self.peak.max(self.small + self.shared);
    }

    fn release(&mut self, held: PooledBytes) {
        *self.of(held.pool) -= held.bytes;
    }
}

/// The memory that one connection holds, bounded by its share of the whole.
#[derive(Debug)]
pub(crate) struct ConnectionBudget {
    memory: Arc<Memory>,
    used: AtomicUsize,
}

impl ConnectionBudget {
    pub(crate) fn new(memory: Arc<Memory>) -> Arc<Self> {
        Arc::new(ConnectionBudget { memory, used: AtomicUsize::new(0) })
    }

    /// The most bytes that a body may have here.
    pub(crate) fn most(&self) -> usize {
        self.memory.connection_most()
    }

    /// Counts `now` bytes instead of `before`.
    fn replace(&self, before: usize, now: usize, mode: ChargeMode) -> Result<(), MemoryExhausted> {
        let most = self.most();
        let change = |used: usize| {
            let used = (used - before).saturating_add(now);
            (now <= before || used <= most || mode == ChargeMode::Always).then_some(used)
        };
        let changed = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
        changed.map(drop).map_err(|_| {
            self.memory.refusals.fetch_add(1, Ordering::Relaxed);
            MemoryExhausted::Connection { most }
        })
    }
}

/// The memory of one request, then of its answer. Dropping it releases all of it.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<ConnectionBudget>,
    /// Whether it may use the share for small ones.
    may_be_small: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    held: PooledBytes,
    /// Bytes of the body or of the answer, which the connection's budget counts.
    body: usize,
    /// Bytes of the head, and of processing the body.
    overhead: usize,
    /// Bytes of the head.
    head: usize,
}

impl Charge {
    /// A charge that holds nothing yet.
    pub(crate) fn new(budget: Arc<ConnectionBudget>) -> Self {
        Charge::of(budget, true)
    }

    /// A charge that holds nothing yet and never uses the share for small requests.
    pub(crate) fn large(budget: Arc<ConnectionBudget>) -> Self {
        Charge::of(budget, false)
    }

    fn of(budget: Arc<ConnectionBudget>, may_be_small: bool) -> Self {
        let held = PooledBytes { pool: Pool::Small, bytes: 0 };
        Charge { budget, may_be_small, state: Mutex::new(State { held, body: 0, overhead: 0, head: 0 }) }
    }

    /// The most bytes that a body may have.
    pub(crate) fn most(&self) -> usize {
        self.budget.most()
    }

    /// Counts the bytes of a head.
    pub(crate) fn head(&self, bytes: usize, mode: ChargeMode) -> Result<(), MemoryExhausted> {
        let mut state = self.state();
        let body = state.body;
        self.set(&mut state, body, bytes, mode)?;
        state.head = bytes;
        Ok(())
    }

    /// Counts `bytes` of an answer that is being written.
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), MemoryExhausted> {
        let mut state = self.state();
        let overhead = state.overhead;
        self.set(&mut state, bytes, overhead, ChargeMode::IfRoom)
    }

    /// Counts `bytes` more of a body.
    pub(crate) fn grow(&self, bytes: usize) -> Result<(), MemoryExhausted> {
        let mut state = self.state();
        let (body, overhead) = (state.body.saturating_add(bytes), state.overhead.saturating_add(bytes / SLACK_PART));
        self.set(&mut state, body, overhead, ChargeMode::IfRoom)
    }

    /// Counts the memory for processing the body, before processing starts.
    pub(crate) fn work(&self) -> Result<(), MemoryExhausted> {
        let mut state = self.state();
        let body = state.body;
        let overhead = state.overhead.saturating_add(body.saturating_mul(WORK)).saturating_add(LEAST_WORK);
        self.set(&mut state, body, overhead, ChargeMode::IfRoom)
    }

    /// The body was processed and dropped before the answer is known: only the head is held, and the least for processing.
    pub(crate) fn release_body(&self) -> Result<(), MemoryExhausted> {
        let mut state = self.state();
        let overhead = state.overhead.min(state.head.saturating_add(LEAST_WORK));
        self.set(&mut state, 0, overhead, ChargeMode::Always)
    }

    /// The request is done: from now on the charge is for an answer of `bytes`.
    pub(crate) fn answer(&self, bytes: usize, mode: ChargeMode) -> Result<(), MemoryExhausted> {
        self.set(&mut self.state(), bytes, 0, mode)
    }

    fn set(&self, state: &mut State, body: usize, overhead: usize, mode: ChargeMode) -> Result<(), MemoryExhausted> {
        self.budget.replace(state.body, body, mode)?;
        let bytes = body.saturating_add(overhead);
        let replaced = self.budget.memory.replace(&mut state.held, self.may_be_small && body <= SMALL, bytes, mode);
        if replaced.is_err() {
            // What was counted before fits.
            self.budget.replace(body, state.body, ChargeMode::Always)?;
        } else {
            (state.body, state.overhead) = (body, overhead);
        }
        replaced
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Err(error) = self.answer(0, ChargeMode::Always) {
            tracing::error!(%error, "releasing the memory of a request");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn charges(memory: &Arc<Memory>, count: usize, bytes: usize) -> Vec<Charge> {
        let charge = || {
            let charge = Charge::new(ConnectionBudget::new(memory.clone()));
            charge.grow(bytes).map(|()| charge)
        };
        (0..count).map_while(|_| charge().ok()).collect()
    }

    #[test]
    fn large_requests_leave_a_quarter_to_small_ones() {
        // Each counts an eighth more than it has bytes.
        let memory = Memory::new(9 * MIB);
        let large = charges(&memory, 60, MIB);
        assert_eq!((large.len(), memory.held()), (6, 9 * MIB / 4 * 3));
        let small = charges(&memory, 60, SMALL);
        let of_small = 28 * (SMALL + SMALL / SLACK_PART);
        assert_eq!((small.len(), memory.held()), (28, 9 * MIB / 4 * 3 + of_small));
        let tiny = charges(&memory, 1_000, 1_024);
        assert_eq!((tiny.len(), memory.held()), (256, 9 * MIB), "the last eighth of the quarter is for them");
        drop((large, tiny));
        assert_eq!(memory.held(), of_small);
        // What is small uses the rest as well.
        assert_eq!(charges(&memory, 1_000, SMALL).len(), 96);
        drop(small);
        assert_eq!((memory.held(), memory.peak()), (0, 9 * MIB));
    }

    #[test]
    fn a_request_that_grows_leaves_the_part_for_small_ones() {
        let memory = Memory::new(9 * MIB);
        let _large = charges(&memory, 6, MIB);
        let growing = Charge::new(ConnectionBudget::new(memory.clone()));
        assert_eq!(growing.grow(SMALL), Ok(()));
        assert_eq!(growing.grow(1), Err(MemoryExhausted::Service { most: 9 * MIB }));
        assert_eq!(memory.held(), 9 * MIB / 4 * 3 + SMALL + SMALL / SLACK_PART);
    }

    #[test]
    fn a_connection_holds_an_eighth() {
        let memory = Memory::new(8 * MIB);
        let budget = ConnectionBudget::new(memory.clone());
        let (first, second) = (Charge::new(budget.clone()), Charge::new(budget.clone()));
        assert_eq!(first.grow(MIB - 1), Ok(()));
        assert_eq!(second.grow(2), Err(MemoryExhausted::Connection { most: MIB }));
        assert_eq!(second.grow(1), Ok(()));
        // A head and the work are not the caller's to choose.
        assert_eq!((second.head(100, ChargeMode::IfRoom), first.work()), (Ok(()), Ok(())));
        let slack = (MIB - 1) / SLACK_PART;
        assert_eq!(memory.held(), MIB + slack + 100 + 2 * (MIB - 1) + LEAST_WORK);
        drop(first);
        assert_eq!((memory.held(), second.grow(MIB - 1)), (101, Ok(())));
    }

    #[test]
    fn an_answer_takes_the_place_of_its_request() {
        let memory = Memory::new(8 * MIB);
        let charge = Charge::new(ConnectionBudget::new(memory.clone()));
        assert_eq!((charge.grow(MIB), charge.work()), (Ok(()), Ok(())));
        assert_eq!(charge.answer(10, ChargeMode::IfRoom), Ok(()));
        assert_eq!(memory.held(), 10);
        assert_eq!(charge.answer(2 * MIB, ChargeMode::IfRoom), Err(MemoryExhausted::Connection { most: MIB }));
        assert_eq!(memory.held(), 10);
        assert_eq!(charge.answer(9 * MIB, ChargeMode::Always), Ok(()));
        assert_eq!(memory.held(), 9 * MIB);
        drop(charge);
        assert_eq!(memory.held(), 0);
    }
}
