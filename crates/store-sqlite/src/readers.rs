//! Reading: a few threads with their own connections, separate from the writer and from the async threads.
//!
//! A read uses one snapshot of the database, whatever is committed meanwhile. Reads continue while the writer is busy
//! and while the disk is full.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use redrive_store::{Error, Liveness};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};

use crate::lock::DirectoryLock;
use crate::names::Names;
use crate::sqlite_error::SqliteError;

/// The most queued reads; further callers wait until there is room.
const QUEUE: usize = 1_024;

/// A connection that reads, and its cached names.
pub(crate) struct Reader {
    pub(crate) connection: Connection,
    pub(crate) names: Names,
}

/// The handle to the threads; they end with [`close`](Readers::close), or when it is dropped.
pub(crate) struct Readers {
    queue: mpsc::Sender<Message>,
    closed: AtomicBool,
    /// Each thread holds the other end and drops it last.
    ended: watch::Receiver<()>,
}

type Job = Box<dyn FnOnce(&mut Reader) + Send>;

enum Message {
    Run(Job),
    Close,
}

impl Readers {
    /// Starts one thread per connection. Each shares the directory's lock.
    pub(crate) fn start(
        connections: Vec<Connection>,
        lock: &Arc<DirectoryLock>,
        liveness: &Liveness,
    ) -> Result<Self, std::io::Error> {
        let (queue, incoming) = mpsc::channel(QUEUE);
        let (ending, ended) = watch::channel(());
        let incoming = Arc::new(Mutex::new(incoming));
        for connection in connections {
            let (incoming, ending, lock) = (Arc::clone(&incoming), ending.clone(), Arc::clone(lock));
            let mut reader = Reader { connection, names: Names::default() };
            let alive = liveness.part("reader");
            std::thread::Builder::new().name("redrive-read".to_owned()).spawn(move || {
                read_until_closed(&mut reader, &incoming);
                alive.ended(true);
                drop((reader, lock));
                drop(ending);
            })?;
        }
        Ok(Readers { queue, closed: AtomicBool::new(false), ended })
    }

    /// Runs `job` on one of the connections, inside one read transaction.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        doing: &'static str,
        job: impl FnOnce(&mut Reader) -> Result<R, SqliteError> + Send + 'static,
    ) -> Result<R, Error> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |reader| {
            let result = reader.in_transaction(job).map_err(|failure| failure.into_error(doing));
            if reply.send(result).is_err() {
                tracing::trace!("a caller did not wait for its read");
            }
        });
        if self.queue.send(Message::Run(job)).await.is_err() {
            return Err(Error::Closed);
        }
        answer.await.unwrap_or_else(|_| Err(Error::Unavailable(format!("{doing}: the reading thread panicked"))))
    }

    /// Finishes the queued reads, ends the threads and waits for them.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if self.queue.send(Message::Close).await.is_err() {
            tracing::debug!("the reading threads had ended before they were closed");
        }
        let mut ended = self.ended.clone();
        // Nothing is ever sent here: the error means that all threads dropped their end.
        while ended.changed().await.is_ok() {}
    }
}

impl Reader {
    fn in_transaction<R>(&mut self, job: impl FnOnce(&mut Reader) -> Result<R, SqliteError>) -> Result<R, SqliteError> {
        self.connection.prepare_cached("BEGIN")?.execute([])?;
        let result = job(self);
        if !self.connection.is_autocommit() {
            self.connection.prepare_cached("ROLLBACK")?.execute([])?;
        }
        result
    }
}

fn read_until_closed(reader: &mut Reader, incoming: &Mutex<mpsc::Receiver<Message>>) {
    while let Some(job) = next_job(incoming) {
        run(reader, job);
    }
}

/// The next job; `None` once the queue is closed and empty.
///
/// A thread waits for a job while it holds the lock, and the others wait for the lock. So a thread that receives
/// `Close` must close the queue before it releases the lock: the next thread would hold the lock and wait forever.
fn next_job(incoming: &Mutex<mpsc::Receiver<Message>>) -> Option<Job> {
    let mut incoming = incoming.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        match incoming.blocking_recv()? {
            Message::Run(job) => return Some(job),
            Message::Close => incoming.close(),
        }
    }
}

fn run(reader: &mut Reader, job: Job) {
    if catch_unwind(AssertUnwindSafe(|| job(reader))).is_err() {
        tracing::error!("a read panicked");
        reader.names.forget();
        if !reader.connection.is_autocommit()
            && let Err(error) = reader.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "ending a read transaction failed");
        }
    }
}
