//! Builds the filter of the table's hashes, on a separate thread.
//!
//! Reading millions of hashes takes a second or more, and neither opening nor writing should wait for that. Until the
//! filter is complete, every key is looked up in the table.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::filter::Filter;
use super::{KeyHash, KeyTable};
use crate::connection;
use crate::sqlite_error::SqliteError;

/// The filter has room for this many times the present number of hashes.
const ROOM: usize = 2;

/// How many rows are read between two checks whether to stop.
const ROWS: usize = 1_024;

/// A filter that is being built. Dropping it stops the thread.
#[derive(Debug)]
pub(super) struct Building {
    thread: Option<JoinHandle<Option<Filter>>>,
    stop: Arc<AtomicBool>,
    /// Hashes that were added to the table since the start: the thread may have missed them.
    pub(super) since: Vec<KeyHash>,
}

impl Building {
    pub(super) fn start(table: &'static KeyTable, database: PathBuf) -> Result<Self, std::io::Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("redrive-keys".to_owned()).spawn(move || {
            let built = connection::observer(&database)
                .map_err(SqliteError::from)
                .and_then(|from| build(table, &from, &stopped));
            built.unwrap_or_else(|failure| {
                // The table answers everything that the filter would. The next try comes with the next opening.
                tracing::warn!(of = table.of, error = %failure, "the filter of idempotency keys could not be made");
                None
            })
        })?;
        Ok(Building { thread: Some(thread), stop, since: Vec::new() })
    }

    pub(super) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// The complete filter, including the hashes that the thread missed; waits for the thread.
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

/// Builds the filter; `None` if it was stopped.
fn build(table: &KeyTable, from: &Connection, stop: &AtomicBool) -> Result<Option<Filter>, SqliteError> {
    let keys: u64 = from.query_row(table.count, [], |row| row.get(0))?;
    let expected = usize::try_from(keys).unwrap_or(usize::MAX).saturating_mul(ROOM);
    let mut filter = Filter::for_about(expected);
    let mut select = from.prepare(table.hashes)?;
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
