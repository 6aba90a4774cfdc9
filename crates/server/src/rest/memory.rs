//! The bytes that requests and answers hold in memory: one budget for all of them.
//!
//! Why bytes and not requests: a request is 500 bytes or 32 MiB. Why bytes that have arrived and not `Content-Length`: a
//! caller may announce little and send much, or announce much and send nothing.
//!
//! | part | whose |
//! | --- | --- |
//! | a quarter | requests and answers of at most [`SMALL`] bytes: large ones cannot take it; an eighth of it for at most [`TINY`] |
//! | the rest | all; what is small uses it when the quarter is full |
//! | an eighth | the most that the bodies and answers of one connection may hold |
//!
//! What does not fit is refused, never waited for: a caller that waits holds what it has sent so far.
//!
//! A [`Charge`] is what one request holds, and after it its answer, until the last byte is handed to the socket.
//! Not here: which connection is closed when there are too many (`connections`).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The largest request or answer that may use the part for small ones.
pub(crate) const SMALL: usize = 64 * 1024;
/// The part of the whole that only small requests and answers may use.
const SMALL_PART: usize = 4;
/// The largest request or answer, all that it takes included, that may use the last part of that part.
const TINY: usize = 16 * 1024;
/// The part of it that only those may use: a submission of 500 bytes has room beside any number of 60 KiB.
const TINY_PART: usize = 8;
/// The part of the whole that one connection may hold.
const CONNECTION_PART: usize = 8;

/// The part of a body that its buffers take beside it: sizes are rounded up, and the last buffer is not full.
const SLACK_PART: usize = 8;
/// What a document takes beyond its own bytes while it is worked on, as a multiple of them: the decoded copy, and the
/// answer that repeats parts of it.
const WORK: usize = 2;
/// What the smallest document takes while it is worked on.
const LEAST_WORK: usize = 4 * 1024;

/// The budget of bytes that all requests and answers of one server share.
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

/// Where the bytes of a charge are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pool {
    Small,
    Shared,
}

/// Bytes, and where they are counted.
#[derive(Debug, Clone, Copy)]
struct Held {
    pool: Pool,
    bytes: usize,
}

/// Whether a charge may be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Must {
    /// It is refused when there is no room.
    Fit,
    /// It is counted in any case: health checks, problems, and the answers to what has been done already.
    BeCounted,
}

/// Why there is no room for more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoRoom {
    #[error(
        "the service holds as many bytes of requests and answers as it may ({most}, --max-api-memory): try again later"
    )]
    Service { most: usize },
    #[error(
        "this connection holds as many bytes of requests and answers as one may ({most}, an eighth of --max-api-memory): \
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
    fn replace(&self, held: &mut Held, is_small: bool, bytes: usize, must: Must) -> Result<(), NoRoom> {
        let small_most = self.most / SMALL_PART;
        let mut pools = self.pools();
        pools.release(*held);
        let small_room = if bytes <= TINY { small_most } else { small_most - small_most / TINY_PART };
        let pool = if is_small && pools.small + bytes <= small_room {
            Pool::Small
        } else if pools.shared + bytes <= self.most - small_most {
            Pool::Shared
        } else if must == Must::BeCounted {
            if is_small { Pool::Small } else { Pool::Shared }
        } else {
            pools.take(*held);
            self.refusals.fetch_add(1, Ordering::Relaxed);
            return Err(NoRoom::Service { most: self.most });
        };
        *held = Held { pool, bytes };
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

    fn take(&mut self, held: Held) {
        *self.of(held.pool) += held.bytes;
        self.peak = self.peak.max(self.small + self.shared);
    }

    fn release(&mut self, held: Held) {
        *self.of(held.pool) -= held.bytes;
    }
}

/// The part of the budget that one connection may hold.
#[derive(Debug)]
pub(crate) struct Share {
    memory: Arc<Memory>,
    used: AtomicUsize,
}

impl Share {
    pub(crate) fn new(memory: Arc<Memory>) -> Arc<Self> {
        Arc::new(Share { memory, used: AtomicUsize::new(0) })
    }

    /// The most bytes that a body may have here.
    pub(crate) fn most(&self) -> usize {
        self.memory.connection_most()
    }

    /// Counts `now` bytes instead of `before`.
    fn replace(&self, before: usize, now: usize, must: Must) -> Result<(), NoRoom> {
        let most = self.most();
        let change = |used: usize| {
            let used = (used - before).saturating_add(now);
            (now <= before || used <= most || must == Must::BeCounted).then_some(used)
        };
        let changed = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
        changed.map(drop).map_err(|_| {
            self.memory.refusals.fetch_add(1, Ordering::Relaxed);
            NoRoom::Connection { most }
        })
    }
}

/// What one request holds, and then its answer. Dropping it gives all of it back.
#[derive(Debug)]
pub(crate) struct Charge {
    share: Arc<Share>,
    /// Whether it may use the part for small ones.
    may_be_small: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    held: Held,
    /// Bytes of the body or of the answer: what the connection's share counts.
    body: usize,
    /// Bytes of the head, and what working on the body takes.
    beside: usize,
}

impl Charge {
    /// A charge that holds nothing yet.
    pub(crate) fn new(share: Arc<Share>) -> Self {
        Charge::of(share, true)
    }

    /// A charge that holds nothing yet and leaves the part for small requests alone, however small it is.
    pub(crate) fn large(share: Arc<Share>) -> Self {
        Charge::of(share, false)
    }

    fn of(share: Arc<Share>, may_be_small: bool) -> Self {
        let held = Held { pool: Pool::Small, bytes: 0 };
        Charge { share, may_be_small, state: Mutex::new(State { held, body: 0, beside: 0 }) }
    }

    /// The most bytes that a body may have.
    pub(crate) fn most(&self) -> usize {
        self.share.most()
    }

    /// Counts the bytes of a head.
    pub(crate) fn head(&self, bytes: usize, must: Must) -> Result<(), NoRoom> {
        let mut state = self.state();
        let body = state.body;
        self.set(&mut state, body, bytes, must)
    }

    /// Counts `bytes` of an answer that is being written.
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), NoRoom> {
        let mut state = self.state();
        let beside = state.beside;
        self.set(&mut state, bytes, beside, Must::Fit)
    }

    /// Counts `bytes` more of a body.
    pub(crate) fn grow(&self, bytes: usize) -> Result<(), NoRoom> {
        let mut state = self.state();
        let (body, beside) = (state.body.saturating_add(bytes), state.beside.saturating_add(bytes / SLACK_PART));
        self.set(&mut state, body, beside, Must::Fit)
    }

    /// Counts what working on the body takes: asked for before anything is done, so that nothing is done in vain.
    pub(crate) fn work(&self) -> Result<(), NoRoom> {
        let mut state = self.state();
        let body = state.body;
        let beside = state.beside.saturating_add(body.saturating_mul(WORK)).saturating_add(LEAST_WORK);
        self.set(&mut state, body, beside, Must::Fit)
    }

    /// The request is done: what is held from now on is an answer of `bytes`.
    pub(crate) fn answer(&self, bytes: usize, must: Must) -> Result<(), NoRoom> {
        self.set(&mut self.state(), bytes, 0, must)
    }

    fn set(&self, state: &mut State, body: usize, beside: usize, must: Must) -> Result<(), NoRoom> {
        self.share.replace(state.body, body, must)?;
        let bytes = body.saturating_add(beside);
        let replaced = self.share.memory.replace(&mut state.held, self.may_be_small && body <= SMALL, bytes, must);
        if replaced.is_err() {
            // What was counted before fits.
            self.share.replace(body, state.body, Must::BeCounted)?;
        } else {
            (state.body, state.beside) = (body, beside);
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
        if let Err(error) = self.answer(0, Must::BeCounted) {
            tracing::error!(%error, "giving back the memory of a request");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn charges(memory: &Arc<Memory>, count: usize, bytes: usize) -> Vec<Charge> {
        let charge = || {
            let charge = Charge::new(Share::new(memory.clone()));
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
        let growing = Charge::new(Share::new(memory.clone()));
        assert_eq!(growing.grow(SMALL), Ok(()));
        assert_eq!(growing.grow(1), Err(NoRoom::Service { most: 9 * MIB }));
        assert_eq!(memory.held(), 9 * MIB / 4 * 3 + SMALL + SMALL / SLACK_PART);
    }

    #[test]
    fn a_connection_holds_an_eighth() {
        let memory = Memory::new(8 * MIB);
        let share = Share::new(memory.clone());
        let (first, second) = (Charge::new(share.clone()), Charge::new(share.clone()));
        assert_eq!(first.grow(MIB - 1), Ok(()));
        assert_eq!(second.grow(2), Err(NoRoom::Connection { most: MIB }));
        assert_eq!(second.grow(1), Ok(()));
        // A head and the work are not the caller's to choose.
        assert_eq!((second.head(100, Must::Fit), first.work()), (Ok(()), Ok(())));
        let slack = (MIB - 1) / SLACK_PART;
        assert_eq!(memory.held(), MIB + slack + 100 + 2 * (MIB - 1) + LEAST_WORK);
        drop(first);
        assert_eq!((memory.held(), second.grow(MIB - 1)), (101, Ok(())));
    }

    #[test]
    fn an_answer_takes_the_place_of_its_request() {
        let memory = Memory::new(8 * MIB);
        let charge = Charge::new(Share::new(memory.clone()));
        assert_eq!((charge.grow(MIB), charge.work()), (Ok(()), Ok(())));
        assert_eq!(charge.answer(10, Must::Fit), Ok(()));
        assert_eq!(memory.held(), 10);
        assert_eq!(charge.answer(2 * MIB, Must::Fit), Err(NoRoom::Connection { most: MIB }));
        assert_eq!(memory.held(), 10);
        assert_eq!(charge.answer(9 * MIB, Must::BeCounted), Ok(()));
        assert_eq!(memory.held(), 9 * MIB);
        drop(charge);
        assert_eq!(memory.held(), 0);
    }
}
