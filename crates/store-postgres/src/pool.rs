//! Connection pool: each connection is lent to one call at a time.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

use crate::connect::Address;
use crate::connection::{Connection, Use};
use crate::options::Options;
use crate::postgres_error::PostgresError;

/// How often a call is tried that conflicts with another transaction.
pub(crate) const TRIES: usize = 5;

/// Runs `work` with a connection of the pool, within the call timeout, and returns its outcome. A call that conflicted
/// with another transaction is tried again, because PostgreSQL rolled it back. A call that reached a read-only server
/// is tried once more on a new connection, because the address may lead to another server by now. (A macro, because the
/// compiler cannot prove that a closure which borrows its connection may move between threads.)
macro_rules! call {
    ($pool:expr, |$connection:ident| $work:expr) => {
        $crate::pool::call!($crate::pool::Purpose::Write, $pool, |$connection| $work)
    };
    ($purpose:expr, $pool:expr, |$connection:ident| $work:expr) => {{
        let pool: &$crate::pool::Pool = &$pool;
        let (mut tries, mut was_read_only) = (1, false);
        loop {
            let deadline = pool.deadline();
            let outcome = match pool.lend_by(deadline, $purpose).await {
                Err(failure) => Err(failure),
                Ok(mut lent) => {
                    pool.by(deadline, async {
                        let $connection: &mut $crate::connection::Connection = &mut lent;
                        let outcome = $work.await;
                        lent.came_to(&outcome);
                        outcome
                    })
                    .await
                }
            };
            match outcome {
                Err(failure) if failure.is_conflict() && tries < $crate::pool::TRIES => {
                    tracing::debug!(%failure, tries, "trying again");
                    tries += 1;
                }
                Err(failure) if failure.is_read_only() && !was_read_only => {
                    tracing::debug!(%failure, "trying again on a fresh connection");
                    was_read_only = true;
                    pool.drop_idle();
                }
                outcome => break outcome,
            }
        }
    }};
}
pub(crate) use call;

/// Runs work that only reads. If its connection was lost, which may have happened long before, the work is done once
/// more on a new one.
macro_rules! read {
    ($pool:expr, |$connection:ident| $work:expr) => {
        match $crate::pool::call!($crate::pool::Purpose::Read, $pool, |$connection| $work) {
            Err(failure) if failure.is_lost_connection() => {
                tracing::debug!(%failure, "reading again on a fresh connection");
                $pool.drop_idle();
                $crate::pool::call!($crate::pool::Purpose::Read, $pool, |$connection| $work)
            }
            outcome => outcome,
        }
    };
}
pub(crate) use read;

/// Runs work in one transaction: committed if the work returns `Ok`, rolled back otherwise.
macro_rules! transact {
    ($pool:expr, |$connection:ident| $work:expr) => {
        $crate::pool::call!($pool, |$connection| async {
            $connection.begin().await?;
            let outcome = {
                let $connection: &$crate::connection::Connection = &*$connection;
                $work.await
            };
            $connection.end(outcome).await
        })
    };
}
pub(crate) use transact;

/// What a connection is lent for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The call may write. A commit may hang while a synchronous standby is away.
    Write,
    /// The call writes nothing, except that it may set a row aside.
    Read,
}

/// A pool of connections. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    address: Address,
    is_pooled: bool,
    plans_last: Duration,
    used: Use,
    call_timeout: Duration,
    /// The connections that are not in use. The one that was used last is lent first, because its statements are
    /// prepared.
    idle: Mutex<Vec<Connection>>,
    /// One permit for each connection, including those that are being closed.
    connections: Arc<Semaphore>,
    /// One permit fewer if there are several, so that a read gets a connection while every write hangs.
    writes: Arc<Semaphore>,
    is_closed: AtomicBool,
}

/// A connection for one call. Dropping it returns it to the pool if the call ended.
pub(crate) struct Lent {
    connection: Option<Connection>,
    /// Whether another call may use it. A call that was aborted leaves its connection in an unknown state.
    is_usable: bool,
    pool: Pool,
    permit: Option<Permit>,
}

/// A permit for one connection. It outlives a call that was given up: PostgreSQL may still be running its statement,
/// and the connection counts until it is closed.
pub(crate) struct Permit {
    _connection: OwnedSemaphorePermit,
    _write: Option<OwnedSemaphorePermit>,
}

impl Pool {
    /// A pool with this many connections for this use.
    pub(crate) fn new(address: Address, options: &Options, connections: usize, used: Use) -> Self {
        let connections = connections.max(1);
        Pool {
            shared: Arc::new(Shared {
                address,
                is_pooled: options.is_pooled,
                plans_last: options.plans_last,
                used,
                call_timeout: options.call_timeout,
                idle: Mutex::default(),
                connections: Arc::new(Semaphore::new(connections)),
                writes: Arc::new(Semaphore::new(if used.reads { (connections - 1).max(1) } else { connections })),
                is_closed: AtomicBool::new(false),
            }),
        }
    }

    /// The timeout of a call.
    pub(crate) fn call_timeout(&self) -> Duration {
        self.shared.call_timeout
    }

    /// The deadline of a call that begins now.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.shared.call_timeout
    }

    /// Runs a call until its deadline.
    pub(crate) async fn by<T>(
        &self,
        deadline: Instant,
        call: impl Future<Output = Result<T, PostgresError>>,
    ) -> Result<T, PostgresError> {
        let timed_out = PostgresError::TimedOut(self.shared.call_timeout);
        tokio::time::timeout_at(deadline, call).await.unwrap_or(Err(timed_out))
    }

    /// A connection for one call. If none is free by the deadline, the call fails and nothing was sent.
    pub(crate) async fn lend_by(&self, deadline: Instant, purpose: Purpose) -> Result<Lent, PostgresError> {
        let busy = PostgresError::Busy(self.shared.call_timeout);
        tokio::time::timeout_at(deadline, self.lend(purpose)).await.unwrap_or(Err(busy))
    }

    /// A connection, without a timeout.
    pub(crate) async fn lend(&self, purpose: Purpose) -> Result<Lent, PostgresError> {
        let acquire =
            async |permits: &Arc<Semaphore>| permits.clone().acquire_owned().await.map_err(|_| PostgresError::Closed);
        let write = match purpose {
            Purpose::Write => Some(acquire(&self.shared.writes).await?),
            Purpose::Read => None,
        };
        let permit = Permit { _connection: acquire(&self.shared.connections).await?, _write: write };
        if self.is_closed() {
            return Err(PostgresError::Closed);
        }
        match self.take_idle() {
            Some(connection) => {
                Ok(Lent { connection: Some(connection), is_usable: false, pool: self.clone(), permit: Some(permit) })
            }
            None => self.lend_new(permit).await,
        }
    }

    /// A new connection. It counts from the start, also if the call is given up before it is made: then it is kept for
    /// the next call.
    async fn lend_new(&self, permit: Permit) -> Result<Lent, PostgresError> {
        let (answer, connected) = oneshot::channel();
        let pool = self.clone();
        tokio::spawn(async move {
            let connected = pool.connect().await;
            let lent = connected.map(|connection| Lent {
                connection: Some(connection),
                is_usable: true,
                pool,
                permit: Some(permit),
            });
            drop(answer.send(lent));
        });
        let mut lent = connected.await.unwrap_or(Err(PostgresError::Closed))?;
        lent.is_usable = false;
        Ok(lent)
    }

    async fn connect(&self) -> Result<Connection, PostgresError> {
        let (client, driven) = self.shared.address.connect_for_writing().await?;
        let until_closed = UntilClosed::default();
        let held = until_closed.clone();
        tokio::spawn(async move {
            driven.run().await;
            drop(held);
        });
        Ok(match self.shared.is_pooled {
            false => Connection::session(client, until_closed, self.shared.plans_last),
            true => Connection::pooled(client, until_closed, self.shared.used),
        })
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle();
        std::iter::from_fn(|| idle.pop()).find(Connection::is_fine)
    }

    /// Closes the idle connections, which were probably lost together with another one. Each counts until it is closed.
    pub(crate) fn drop_idle(&self) {
        while let Ok(permit) = self.shared.connections.clone().try_acquire_owned() {
            let Some(connection) = self.idle().pop() else { break };
            connection.close_with(Permit { _connection: permit, _write: None });
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets calls under way finish, rejects new ones, and closes the connections.
    pub(crate) fn close(&self) {
        self.shared.is_closed.store(true, Ordering::Release);
        self.shared.writes.close();
        self.shared.connections.close();
        self.idle().clear();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Acquire)
    }
}

/// Holds the permit of a connection that is being closed, until it is.
#[derive(Clone, Default)]
pub(crate) struct UntilClosed(Arc<Mutex<Option<Permit>>>);

impl UntilClosed {
    pub(crate) fn hold(&self, permit: Permit) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(permit);
    }
}

impl Lent {
    /// Ends the call. If its outcome is unknown, or if the connection is the cause of a failure, the connection is not
    /// used again.
    pub(crate) fn came_to<T>(&mut self, outcome: &Result<T, PostgresError>) {
        let is_unfit = |failure: &PostgresError| failure.is_in_doubt() || failure.is_about_the_connection();
        self.is_usable = !outcome.as_ref().is_err_and(is_unfit);
    }
}

impl Deref for Lent {
    type Target = Connection;

    #[expect(clippy::expect_used, reason = "only `drop` takes it")]
    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("a lent connection")
    }
}

impl DerefMut for Lent {
    #[expect(clippy::expect_used, reason = "only `drop` takes it")]
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("a lent connection")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let (Some(connection), Some(permit)) = (self.connection.take(), self.permit.take()) else { return };
        if self.is_usable && connection.is_fine() && !self.pool.is_closed() {
            self.pool.idle().push(connection);
        } else {
            connection.close_with(permit);
        }
    }
}
