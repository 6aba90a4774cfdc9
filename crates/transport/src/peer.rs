//! What is kept of one lane's connections to one origin.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_engine::transport::SendError;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use crate::origin::Origin;
use crate::{http1, http2};

/// One lane's connections to one origin.
pub(crate) struct Peer {
    /// Whom they go to.
    pub(crate) origin: Origin,
    /// One for each connection that may be in use. A new one is opened only when no unused one is left, so this bounds
    /// the unused ones too.
    pub(crate) places: Arc<Semaphore>,
    kept: Mutex<Kept>,
}

struct Kept {
    /// Unused HTTP/1.1 connections, the one used last at the end.
    idle: Vec<Idle>,
    shared: Option<Shared>,
    /// Somebody is finding out whether a connection can be shared.
    opening: Option<watch::Receiver<Outcome>>,
    /// Whether a connection may turn out to be one to share.
    may_share: bool,
}

struct Idle {
    connection: http1::Connection,
    until: Instant,
    _counted: Counted,
}

struct Shared {
    connection: Arc<http2::Connection>,
    until: Instant,
    _counted: Counted,
}

/// Counts a kept connection for as long as it is kept.
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Counted {
    pub(crate) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What opening a connection came to; nothing while it is under way.
pub(crate) type Outcome = Option<Result<(), SendError>>;

/// The next step to a connection.
pub(crate) enum Way<'p> {
    /// Use this one.
    Share(Arc<http2::Connection>),
    /// Somebody opens one that may be shared: see what comes of it.
    Wait(watch::Receiver<Outcome>),
    /// Open one that may be shared; others wait for it.
    Open(Opening<'p>),
    /// The peer speaks HTTP/1.1: take an unused connection or open one.
    Own,
}

/// The right to open the connection that others wait for. Dropping it lets another send take over.
pub(crate) struct Opening<'p> {
    peer: &'p Peer,
    outcome: watch::Sender<Outcome>,
}

impl Opening<'_> {
    /// Tells those who wait.
    pub(crate) fn finish(self, outcome: Result<(), SendError>) {
        self.outcome.send_replace(Some(outcome));
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.peer.kept().opening = None;
    }
}

impl Peer {
    /// No connections yet, and at most this many in use at once.
    pub(crate) fn new(origin: Origin, max_connections: usize, may_share: bool) -> Self {
        let kept = Kept { idle: Vec::new(), shared: None, opening: None, may_share };
        Peer { origin, places: Arc::new(Semaphore::new(max_connections)), kept: Mutex::new(kept) }
    }

    /// The next step to a connection.
    pub(crate) fn way(&self) -> Way<'_> {
        let mut kept = self.kept();
        if let Some(shared) = &kept.shared {
            if !shared.connection.is_closed() {
                return Way::Share(shared.connection.clone());
            }
            kept.shared = None;
        }
        if !kept.may_share {
            return Way::Own;
        }
        if let Some(opening) = &kept.opening {
            return Way::Wait(opening.clone());
        }
        let (outcome, opening) = watch::channel(None);
        kept.opening = Some(opening);
        Way::Open(Opening { peer: self, outcome })
    }

    /// Lets others use this connection, and keeps it `until` then if nobody does.
    pub(crate) fn share(&self, connection: Arc<http2::Connection>, until: Instant, counted: Counted) {
        let shared = Shared { connection, until, _counted: counted };
        let mut kept = self.kept();
        kept.may_share = true;
        let replaced = kept.shared.replace(shared);
        drop(kept);
        drop(replaced);
    }

    /// Notes that the peer speaks HTTP/1.1, so that nobody waits to share.
    pub(crate) fn speaks_http1(&self) {
        self.kept().may_share = false;
    }

    /// Nobody is to use this connection any more; those who do may finish.
    pub(crate) fn retire(&self, connection: &Arc<http2::Connection>) {
        let mut kept = self.kept();
        let retired = kept.shared.take_if(|shared| Arc::ptr_eq(&shared.connection, connection));
        drop(kept);
        drop(retired);
    }

    /// Notes that this connection was in use until now, and is kept `until` then.
    pub(crate) fn used(&self, connection: &Arc<http2::Connection>, until: Instant) {
        if let Some(shared) = &mut self.kept().shared
            && Arc::ptr_eq(&shared.connection, connection)
        {
            shared.until = until;
        }
    }

    /// The unused connection that was used last, unless its time is over by `now`.
    pub(crate) fn take_idle(&self, now: Instant) -> Option<http1::Connection> {
        // The time of those below the last one is over as well; closing them is left to the reaper.
        self.kept().idle.pop_if(|idle| idle.until > now).map(|idle| idle.connection)
    }

    /// Keeps an unused connection `until` then, unless there are `most` already.
    pub(crate) fn keep(&self, connection: http1::Connection, until: Instant, counted: Counted, most: usize) {
        let idle = Idle { connection, until, _counted: counted };
        let mut kept = self.kept();
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
        into.shared.extend(kept.shared.take_if(expired));
        kept.idle.is_empty() && kept.shared.is_none()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Whether no send holds it.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.connection) == 1
    }
}

/// Connections that are no longer kept; they close when this is dropped.
#[derive(Default)]
pub(crate) struct Unused {
    own: Vec<Idle>,
    shared: Vec<Shared>,
}
