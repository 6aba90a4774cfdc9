//! A few connections, handed out one at a time.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connect::Address;
use crate::connection::{Connection, Use};
use crate::failure::Failure;
use crate::options::Options;

/// How often a call that met another transaction is tried.
pub(crate) const TRIES: usize = 5;

/// Runs `work` with a connection of the pool, within the time that a call may take, and answers what it came to. What
/// stood in another transaction's way is tried again: PostgreSQL undid it. What met a server that takes no writes is tried
/// again once, on a fresh connection: the address may lead to another server by now. (A macro, because the compiler cannot see that
/// a closure which borrows its connection may move between threads.)
macro_rules! call {
    ($pool:expr, |$connection:ident| $work:expr) => {{
        let pool: &$crate::pool::Pool = &$pool;
        let (mut tries, mut was_read_only) = (1, false);
        loop {
            let outcome = pool
                .within_time(async {
                    let mut lent = pool.lend().await?;
                    let $connection: &mut $crate::connection::Connection = &mut lent;
                    let outcome = $work.await;
                    lent.came_to(&outcome);
                    outcome
                })
                .await;
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

/// The same for work that only reads: if its connection was lost, which may have happened long before, it is done again once,
/// on a fresh one.
macro_rules! read {
    ($pool:expr, |$connection:ident| $work:expr) => {
        match $crate::pool::call!($pool, |$connection| $work) {
            Err(failure) if failure.is_lost_connection() => {
                tracing::debug!(%failure, "reading again on a fresh connection");
                $pool.drop_idle();
                $crate::pool::call!($pool, |$connection| $work)
            }
            outcome => outcome,
        }
    };
}
pub(crate) use read;

/// The same for work that is one transaction: committed if it comes to `Ok`, undone otherwise.
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

/// The connections. Cheap to clone.
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
    /// The one used last comes first: its statements are prepared, and the others may rest.
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
    is_closed: AtomicBool,
}

/// A connection for one call; dropping it gives it back if the call came to its end.
pub(crate) struct Lent {
    connection: Option<Connection>,
    /// Whether somebody else may have it. A call that was broken off leaves a connection in an unknown state.
    is_usable: bool,
    pool: Pool,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    /// This many connections for this use.
    pub(crate) fn new(address: Address, options: &Options, connections: usize, used: Use) -> Self {
        Pool {
            shared: Arc::new(Shared {
                address,
                is_pooled: options.is_pooled,
                plans_last: options.plans_last,
                used,
                call_timeout: options.call_timeout,
                idle: Mutex::default(),
                permits: Arc::new(Semaphore::new(connections.max(1))),
                is_closed: AtomicBool::new(false),
            }),
        }
    }

    /// Sees a call through within the time that it may take.
    pub(crate) async fn within_time<T>(&self, call: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let timeout = self.shared.call_timeout;
        tokio::time::timeout(timeout, call).await.unwrap_or(Err(Failure::TimedOut(timeout)))
    }

    /// A connection, for one call.
    pub(crate) async fn lend(&self) -> Result<Lent, Failure> {
        let permit = self.shared.permits.clone().acquire_owned().await.map_err(|_| Failure::Closed)?;
        if self.shared.is_closed.load(Ordering::Acquire) {
            return Err(Failure::Closed);
        }
        let connection = match self.take_idle() {
            Some(connection) => connection,
            None => {
                let (client, driven) = self.shared.address.connect_for_writing().await?;
                tokio::spawn(driven.run());
                match self.shared.is_pooled {
                    false => Connection::session(client, self.shared.plans_last),
                    true => Connection::pooled(client, self.shared.used),
                }
            }
        };
        Ok(Lent { connection: Some(connection), is_usable: false, pool: self.clone(), _permit: permit })
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| idle.pop()).find(Connection::is_fine)
    }

    /// Closes the connections that nobody uses: they were lost with another one, most likely.
    pub(crate) fn drop_idle(&self) {
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Lets calls under way finish, refuses further ones, and closes the connections.
    pub(crate) fn close(&self) {
        self.shared.is_closed.store(true, Ordering::Release);
        self.shared.permits.close();
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Acquire)
    }
}

impl Lent {
    /// The call came to its end. If nobody knows what it did, or if the connection is at fault, nobody else gets it.
    pub(crate) fn came_to<T>(&mut self, outcome: &Result<T, Failure>) {
        let is_unfit = |failure: &Failure| failure.is_in_doubt() || failure.is_about_the_connection();
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
        if let Some(connection) = self.connection.take().filter(Connection::is_fine)
            && self.is_usable
            && !self.pool.is_closed()
        {
            self.pool.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}
