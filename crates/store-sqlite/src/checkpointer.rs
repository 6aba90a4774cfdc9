//! The checkpointer: a thread that moves committed pages from the write-ahead log into the database file.
//!
//! A checkpoint writes and syncs the database file, which takes many times as long as a commit. In the writer it would
//! set the worst latency of every call. On this thread it is PASSIVE, which neither waits for other connections nor
//! blocks them. Under sustained load it never quite catches up, and the log starts over only when it has. So when the
//! log grows beyond its limit, the writer does the small rest itself, between two transactions.
//!
//! SQLite syncs the database file only in a checkpoint that catches up. That would be the writer's: 150 ms, every 2 s
//! at full load, in which nothing is committed. So this thread syncs the file before it sets the writer's flag.
//!
//! Without commits the thread does not wake up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use redrive_store::{Error, Liveness};
use rusqlite::Connection;

use crate::lock::DirectoryLock;
use crate::options::Options;
use crate::sqlite_error::SqliteError;

/// How long to pause after a checkpoint that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The handle to the thread. Dropping it makes a last checkpoint and ends the thread.
pub(crate) struct Checkpointer {
    shared: Arc<CheckpointState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct CheckpointState {
    /// Whether there were commits since the last checkpoint began.
    dirty: AtomicBool,
    /// Whether the log is beyond its limit.
    restart: AtomicBool,
    stopped: Mutex<bool>,
    wake: Condvar,
}

impl Checkpointer {
    /// Starts the thread. It shares the directory's lock, so that no other process opens the database before the last
    /// checkpoint.
    pub(crate) fn start(
        connection: Connection,
        options: &Options,
        lock: Arc<DirectoryLock>,
        liveness: &Liveness,
    ) -> Result<Self, std::io::Error> {
        let shared = Arc::new(CheckpointState::default());
        let work = Work {
            shared: Arc::clone(&shared),
            connection,
            lock,
            after: options.checkpoint_after,
            limit_bytes: options.wal_limit_bytes,
        };
        let alive = liveness.part("checkpointer");
        let thread = std::thread::Builder::new().name("redrive-checkpoint".to_owned()).spawn(move || {
            work.run();
            alive.ended(*work.shared.lock());
        })?;
        Ok(Checkpointer { shared, thread: Some(thread) })
    }

    /// Notifies the thread of a commit.
    pub(crate) fn committed(&self) {
        if !self.shared.dirty.swap(true, Ordering::AcqRel) {
            // Under the lock, or the thread could be between reading `dirty` and waiting.
            let _stopped = self.shared.lock();
            self.shared.wake.notify_one();
        }
    }

    /// Whether the writer should restart the log now; `true` once per checkpoint.
    pub(crate) fn wants_restart(&self) -> bool {
        self.shared.restart.load(Ordering::Relaxed) && self.shared.restart.swap(false, Ordering::AcqRel)
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        *self.shared.lock() = true;
        self.shared.wake.notify_one();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the checkpointing thread panicked");
        }
    }
}

impl CheckpointState {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a commit; `false` if the thread must stop instead.
    fn wait_for_commit(&self) -> bool {
        let waiting = self.wake.wait_while(self.lock(), |stopped| !*stopped && !self.dirty.load(Ordering::Acquire));
        !*waiting.unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for some time; `false` if the thread must stop instead.
    fn pause(&self, time: Duration) -> bool {
        let paused = self.wake.wait_timeout_while(self.lock(), time, |stopped| !*stopped);
        !*paused.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// What the thread owns. The fields are dropped in this order: the connection is closed before the lock is released.
struct Work {
    shared: Arc<CheckpointState>,
    connection: Connection,
    lock: Arc<DirectoryLock>,
    after: Duration,
    limit_bytes: u64,
}

impl Work {
    fn run(&self) {
        let mut is_failing = false;
        while self.shared.wait_for_commit() && self.shared.pause(self.after) {
            self.shared.dirty.store(false, Ordering::Release);
            let outcome = self.checkpoint();
            match &outcome {
                Err(error) if !is_failing => {
                    tracing::warn!(%error, "a checkpoint failed; the log is kept, and the next checkpoint tries again");
                }
                Ok(()) if is_failing => tracing::info!("checkpoints succeed again"),
                _ => {}
            }
            is_failing = outcome.is_err();
            if is_failing {
                self.shared.dirty.store(true, Ordering::Release);
                if !self.shared.pause(AFTER_FAILURE) {
                    break;
                }
            }
        }
        // SQLite removes the log when its last connection is closed. Truncating it before (TRUNCATE) is not safe: a
        // power loss may leave the beginning of it, and the next start would write that over newer pages of the
        // database.
        if let Err(error) = self.move_what_there_is() {
            tracing::warn!(%error, "the last checkpoint failed; the log is kept and the next start reads it");
        }
    }

    fn checkpoint(&self) -> Result<(), Error> {
        if self.move_what_there_is()? > self.limit_bytes {
            // The first sync takes long, so much is committed meanwhile. The small rest is what is committed during the
            // second sync.
            self.sync()?;
            self.move_what_there_is()?;
            self.sync()?;
            self.shared.restart.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn move_what_there_is(&self) -> Result<u64, Error> {
        self.move_log().map_err(|failure| failure.into_error("moving the log into the database"))
    }

    fn sync(&self) -> Result<(), Error> {
        self.lock.sync_database().map_err(|error| Error::Unavailable(format!("syncing the database: {error}")))
    }

    /// Moves the log into the database; returns the size of the log.
    fn move_log(&self) -> Result<u64, SqliteError> {
        let passive = "PRAGMA wal_checkpoint(PASSIVE)";
        let frames: i64 = self.connection.prepare_cached(passive)?.query_row([], |row| row.get(1))?;
        let page_bytes: u64 = self.connection.prepare_cached("PRAGMA page_size")?.query_row([], |row| row.get(0))?;
        Ok(u64::try_from(frames).unwrap_or(0).saturating_mul(page_bytes))
    }
}
