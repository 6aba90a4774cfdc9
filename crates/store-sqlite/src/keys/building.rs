//! Making the filter of the table's hashes, on a thread of its own.
//!
//! Reading millions of hashes takes a second or more, which neither opening nor writing should wait for. Until the
//! filter is there, the table is asked.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::KeyHash;
use super::filter::Filter;
use crate::connection;
use crate::failure::Failure;

/// A filter with room for this many times as many hashes as there are.
const ROOM: usize = 2;

/// How many rows are read between two looks at whether to stop.
const ROWS: usize = 1_024;

/// A filter that is being made. Dropping it stops the thread.
#[derive(Debug)]
pub(super) struct Building {
    thread: Option<JoinHandle<Option<Filter>>>,
    stop: Arc<AtomicBool>,
    /// Hashes that went to the table since: the thread may have missed them.
    pub(super) since: Vec<KeyHash>,
}

impl Building {
    pub(super) fn start(database: PathBuf) -> Result<Self, std::io::Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("redrive-keys".to_owned()).spawn(move || {
            let built = connection::observer(&database).map_err(Failure::from).and_then(|from| build(&from, &stopped));
            built.unwrap_or_else(|failure| {
                // The table answers everything that the filter would; the next attempt comes with the next opening.
                tracing::warn!(error = %failure, "the filter of idempotency keys could not be made");
                None
            })
        })?;
        Ok(Building { thread: Some(thread), stop, since: Vec::new() })
    }

    pub(super) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// The filter with all that it missed; waits for the thread.
    pub(super) fn finish(mut self) -> Option<Filter> {
        let mut filter = self.thread.take()?.join().ok()??;
        self.since.iter().for_each(|hash| filter.insert(*hash));
        Some(filter)
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that makes the filter of idempotency keys panicked");
        }
    }
}

/// `None` if it was stopped.
fn build(from: &Connection, stop: &AtomicBool) -> Result<Option<Filter>, Failure> {
    let tasks: u64 = from.query_row("SELECT coalesce(sum(tasks), 0) FROM task_counts", [], |row| row.get(0))?;
    let expected = usize::try_from(tasks).unwrap_or(usize::MAX).saturating_mul(ROOM);
    let mut filter = Filter::for_about(expected);
    let mut select = from.prepare("SELECT hash FROM keys")?;
    let mut rows = select.query([])?;
    let mut read = 0;
    while let Some(row) = rows.next()? {
        filter.insert(KeyHash(row.get(0)?));
        read += 1;
        if read % ROWS == 0 && stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    Ok(Some(filter))
}
