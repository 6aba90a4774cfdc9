//! Index from idempotency keys to tasks.
//!
//! Keys are random, and an index on disk by a random value costs a page read and a page write for each new row: three
//! times the rest of a task's life. So the newest keys are only in memory. They are moved to the index in bulk and in
//! the index's order, so that each touched page takes many of them:
//!
//! ```text
//! recent ──more than the limit──▶ frozen ──a slice with each commit──▶ the table `keys`
//! ```
//!
//! The table is complete up to a task, the *watermark*, which is written with the last slice. On opening, the keys of
//! all later tasks are read again. A task that is older than what is being moved (ids are made before tasks are queued)
//! goes to the table directly, or a restart would miss it.
//!
//! A filter in memory tells whether a key may be in the table at all, so a new key rarely costs a disk access.
//!
//! All lookups use a hash of tenant and key. A hit is a candidate: the caller compares the row.

mod buckets;
mod building;
mod filter;
mod load;
mod moving;

use std::path::PathBuf;
use std::sync::LazyLock;

use redrive_core::request::Fingerprinter;
use rusqlite::Connection;

use crate::bulk::Bulk;
use crate::sqlite_error::SqliteError;
use buckets::Buckets;
use building::Building;
use filter::Filter;
use moving::{Frozen, Slice};

/// A hash of tenant and key for which no collision can be constructed. It is signed only because SQLite's integers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyHash(i64);

impl KeyHash {
    pub(crate) fn of(tenant: &str, key: &str) -> Self {
        let digest = Fingerprinter::default().part(tenant.as_bytes()).part(key.as_bytes()).finish();
        let mut first = [0; 8];
        first.copy_from_slice(&digest.0[..8]);
        KeyHash(i64::from_le_bytes(first))
    }
}

/// A hash and the task whose key it is.
type Entry = (KeyHash, i64);

/// The keys that are in memory, and the changes of the open transaction.
#[derive(Debug)]
pub(crate) struct Keys {
    limit: usize,
    recent: Buckets,
    frozen: Option<Frozen>,
    /// The newest task whose key was ever added.
    newest: i64,
    /// The task up to which the table is complete, or will be once the frozen keys are moved.
    covered: i64,
    /// The hashes that may be in the table; without a filter, any hash may be.
    filter: Option<Filter>,
    /// A new filter that is being built.
    building: Option<Building>,
    /// Whether building a filter failed: there is none until the next opening.
    gave_up_building: bool,
    database: PathBuf,
    undo: Vec<Undo>,
    /// The keys that the open transaction moved.
    slice: Option<Slice>,
}

#[derive(Debug, Clone, Copy)]
enum Undo {
    Added(Entry),
    RemovedRecent(Entry),
    RemovedFrozen(Entry),
}

impl Keys {
    /// The tasks that may have this key.
    pub(crate) fn candidates(&self, connection: &Connection, hash: KeyHash) -> Result<Vec<i64>, SqliteError> {
        let mut tasks: Vec<i64> = self.recent.tasks(hash).collect();
        if let Some(frozen) = &self.frozen {
            tasks.extend(frozen.entries.tasks(hash));
        }
        if self.filter.as_ref().is_none_or(|filter| filter.may_contain(hash)) {
            let mut select = connection.prepare_cached("SELECT task FROM keys WHERE hash = ?1")?;
            let mut rows = select.query([hash.0])?;
            while let Some(row) = rows.next()? {
                tasks.push(row.get(0)?);
            }
        }
        Ok(tasks)
    }

    /// Adds a new task's key.
    pub(crate) fn add(&mut self, connection: &Connection, hash: KeyHash, task: i64) -> Result<(), SqliteError> {
        if task <= self.covered {
            return self.insert_into_table(connection, &[(hash, task)]);
        }
        self.newest = self.newest.max(task);
        self.recent.insert((hash, task));
        self.undo.push(Undo::Added((hash, task)));
        Ok(())
    }

    /// Removes a task's key.
    pub(crate) fn remove(&mut self, connection: &Connection, hash: KeyHash, task: i64) -> Result<(), SqliteError> {
        let entry = (hash, task);
        if self.recent.remove(entry) {
            self.undo.push(Undo::RemovedRecent(entry));
            return Ok(());
        }
        if self.frozen.as_mut().is_some_and(|frozen| frozen.entries.remove(entry)) {
            self.undo.push(Undo::RemovedFrozen(entry));
        }
        connection.prepare_cached("DELETE FROM keys WHERE hash = ?1 AND task = ?2")?.execute((hash.0, task))?;
        Ok(())
    }

    fn insert_into_table(&mut self, connection: &Connection, entries: &[Entry]) -> Result<(), SqliteError> {
        // A crash may have left some of the keys that are moved again: IGNORE.
        static INSERT: LazyLock<Bulk> = LazyLock::new(|| Bulk::new("INSERT OR IGNORE INTO keys (hash, task)", 2));
        INSERT.insert(connection, entries, |values, (hash, task)| {
            values.put(hash.0)?;
            values.put(task)
        })?;
        // After a rollback the filter only has a few more false positives.
        for (hash, _) in entries {
            self.filter.iter_mut().for_each(|filter| filter.insert(*hash));
            self.building.iter_mut().for_each(|building| building.since.push(*hash));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
