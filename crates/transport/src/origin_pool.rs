//! The kept connections of one tenant to one origin.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_dial::Step;
use redrive_engine::transport::SendError;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::connect_queue::{ConnectQueue, Grant};
use crate::http2::{INITIAL_STREAMS, Use};
use crate::origin::Origin;
use crate::{http1, http2};

/// One tenant's connections to one origin.
pub(crate) struct OriginPool {
    /// The origin.
    pub(crate) origin: Origin,
    kept: Arc<Mutex<Connections>>,
}

/// The kept connections, and the sends that wait for one.
pub(crate) struct Connections {
    /// Unused HTTP/1.1 connections, the one used last at the end.
    idle: Vec<Idle>,
    /// Sends that wait for a connection of their own. While one does, none in `idle` can be used.
    pub(crate) queue: ConnectQueue,
    /// HTTP/2 connections. The first ones are used first, so that those which are not needed any more become idle.
    shared: Vec<Shared>,
    /// Connections that are being opened and may turn out to be ones to share.
    openings: Vec<PendingConnection>,
    /// The number of the next opening.
    next_opening: u64,
    /// Whether a connection may turn out to be one to share.
    may_share: bool,
    /// How many streams a connection had that was opened before.
    streams: usize,
}

struct Idle {
    connection: http1::Connection,
    until: Instant,
    _counted: KeptCount,
}

struct Shared {
    connection: Arc<http2::Connection>,
    until: Instant,
    _counted: KeptCount,
}

struct PendingConnection {
    number: u64,
    progress: watch::Receiver<Progress>,
    /// How many streams of the connection are spoken for.
    expected: usize,
}

/// Counts a kept connection for as long as it is kept.
pub(crate) struct KeptCount(Arc<AtomicUsize>);

impl KeptCount {
    pub(crate) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        KeptCount(count.clone())
    }
}

impl Drop for KeptCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How far the opening of a connection is.
#[derive(Clone)]
pub(crate) enum Progress {
    /// It is under way.
    At(Step),
    /// There is a connection.
    Opened,
    /// There is none.
    Failed {
        /// Why.
        error: SendError,
        /// How long it was allowed to take.
        within: Duration,
    },
}

/// How a send gets a connection.
pub(crate) enum NextStep<'p> {
    /// Use this stream of a shared connection.
    Share(http2::Stream),
    /// One is being opened that may be shared: wait for it.
    Wait(watch::Receiver<Progress>),
    /// Open one that may be shared; others wait for it.
    Open(OpeningGuard<'p>),
    /// Take an unused connection or open one.
    Own,
}

/// The right to open a connection that others wait for. Dropping it lets another send take over.
pub(crate) struct OpeningGuard<'p> {
    origin_pool: &'p OriginPool,
    number: u64,
    progress: watch::Sender<Progress>,
}

impl OpeningGuard<'_> {
    /// Tells those who wait how far it is.
    pub(crate) fn tell(&self, progress: Progress) {
        self.progress.send_replace(progress);
    }
}

impl Drop for OpeningGuard<'_> {
    fn drop(&mut self) {
        self.origin_pool.kept().openings.retain(|opening| opening.number != self.number);
    }
}

impl OriginPool {
    /// No connections yet.
    pub(crate) fn new(origin: Origin, may_share: bool) -> Self {
        OriginPool { origin, kept: Arc::new(Mutex::new(Connections::new(may_share))) }
    }

    /// The next step to a connection for this use.
    pub(crate) fn way(&self, usage: Use) -> NextStep<'_> {
        let mut kept = self.kept();
        if let Some(stream) = kept.stream(usage) {
            return NextStep::Share(stream);
        }
        if !kept.may_share || usage == Use::Exclusive {
            return NextStep::Own;
        }
        let streams = kept.streams;
        if let Some(opening) = kept.openings.iter_mut().find(|opening| opening.expected < streams) {
            opening.expected += 1;
            return NextStep::Wait(opening.progress.clone());
        }
        let (sender, progress) = watch::channel(Progress::At(Step::Resolve));
        let number = kept.next_opening;
        kept.next_opening += 1;
        kept.openings.push(PendingConnection { number, progress, expected: 1 });
        NextStep::Open(OpeningGuard { origin_pool: self, number, progress: sender })
    }

    /// Lets others use this connection, and keeps it `until` then if it is not used.
    pub(crate) fn share(&self, connection: Arc<http2::Connection>, until: Instant, counted: KeptCount) {
        let mut kept = self.kept();
        kept.may_share = true;
        kept.shared.push(Shared { connection, until, _counted: counted });
    }

    /// Notes that the peer speaks HTTP/1.1, so that no send waits to share.
    pub(crate) fn speaks_http1(&self) {
        self.kept().may_share = false;
    }

    /// Takes this connection out of use; sends under way on it may finish.
    pub(crate) fn retire(&self, connection: &Arc<http2::Connection>) {
        let retired = self.kept().take_shared(connection);
        drop(retired);
    }

    /// Notes that this connection was in use until now, and is kept `until` then, unless `most` are unused already.
    pub(crate) fn used(&self, connection: &Arc<http2::Connection>, until: Instant, most: usize) {
        let mut kept = self.kept();
        kept.streams = connection.max_streams();
        if let Some(shared) = kept.shared.iter_mut().find(|shared| Arc::ptr_eq(&shared.connection, connection)) {
            shared.until = until;
        }
        let too_many = connection.is_idle() && kept.shared.iter().filter(|shared| shared.is_idle()).count() > most;
        let closed = if too_many { kept.take_shared(connection) } else { None };
        drop(kept);
        drop(closed);
    }

    /// The unused connection that was used last, unless its time is over by `now`; or else the right to open one, now
    /// or later.
    pub(crate) fn idle_or_permit(&self, now: Instant) -> Result<Grant, oneshot::Receiver<Grant>> {
        let mut kept = self.kept();
        // The time of those below the last one is over as well; closing them is left to the reaper.
        match kept.idle.pop_if(|idle| idle.until > now) {
            Some(idle) => Ok(Grant::Connection(idle.connection)),
            None => kept.queue.join(&self.kept).map(Grant::Permit),
        }
    }

    /// The right to open a connection, now or later; while it waits, it may be given an unused one instead.
    pub(crate) fn permit(&self) -> Result<Grant, oneshot::Receiver<Grant>> {
        self.kept().queue.join(&self.kept).map(Grant::Permit)
    }

    /// Hands an unused connection to a send that waits for one. If none does it is kept `until` then, unless there are
    /// `most` already.
    pub(crate) fn keep(&self, connection: http1::Connection, until: Instant, counted: KeptCount, most: usize) {
        let mut kept = self.kept();
        let Some(connection) = kept.queue.hand_over(connection) else { return };
        let idle = Idle { connection, until, _counted: counted };
        if kept.idle.len() < most {
            kept.idle.push(idle);
        }
    }

    /// Appends until when each unused connection is kept.
    pub(crate) fn unused_until(&self, into: &mut Vec<Instant>) {
        let kept = self.kept();
        into.extend(kept.idle.iter().map(|idle| idle.until));
        into.extend(kept.shared.iter().filter(|shared| shared.is_idle()).map(|shared| shared.until));
    }

    /// Takes out what is unused and kept no longer than `until` then, to be dropped where no lock is held. Says whether
    /// nothing is left.
    pub(crate) fn take_unused(&self, until: Instant, into: &mut Unused) -> bool {
        let mut kept = self.kept();
        let expired = kept.idle.partition_point(|idle| idle.until <= until);
        into.own.extend(kept.idle.drain(..expired));
        let expired = |shared: &mut Shared| shared.connection.is_closed() || shared.is_idle() && shared.until <= until;
        into.shared.extend(kept.shared.extract_if(.., expired));
        kept.idle.is_empty() && kept.shared.is_empty()
    }

    fn kept(&self) -> MutexGuard<'_, Connections> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connections {
    pub(crate) fn new(may_share: bool) -> Self {
        Connections {
            idle: Vec::new(),
            queue: ConnectQueue::default(),
            shared: Vec::new(),
            openings: Vec::new(),
            next_opening: 0,
            may_share,
            streams: INITIAL_STREAMS,
        }
    }

    /// A stream of the first connection that has one. Connections that are closed are forgotten.
    fn stream(&mut self, usage: Use) -> Option<http2::Stream> {
        self.shared.retain(|shared| !shared.connection.is_closed());
        self.shared.iter().find_map(|shared| shared.connection.stream(usage))
    }

    fn take_shared(&mut self, connection: &Arc<http2::Connection>) -> Option<Shared> {
        let at = self.shared.iter().position(|shared| Arc::ptr_eq(&shared.connection, connection))?;
        Some(self.shared.remove(at))
    }
}

impl Shared {
    /// Whether no send uses it.
    fn is_idle(&self) -> bool {
        self.connection.is_idle()
    }
}

/// Connections that are no longer kept; they close when this is dropped.
#[derive(Default)]
pub(crate) struct Unused {
    own: Vec<Idle>,
    shared: Vec<Shared>,
}
