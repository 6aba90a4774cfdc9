//! Which task an idempotency key belongs to.
//!
//! Keys are random, and an index on disk by a random value costs a page read and a page write for each new row: three
//! times the rest of a task's life. So the newest keys are only in memory, and are moved to the index in bulk and in
//! the index's order, where a page that is touched takes many of them:
//!
//! ```text
//! recent ──more than the limit──▶ frozen ──a slice with each commit──▶ the table `keys`
//! ```
//!
//! The table is complete up to a task, the *watermark*, which is written with the last slice; on opening, the keys of
//! all later tasks are read again. A task that is older than what is being moved (ids are made before tasks are queued)
//! goes to the table directly, or a restart would miss it.
//!
//! Whether a key may be in the table at all is known from a filter in memory: a new key rarely costs a look at the disk.
//!
//! Everything here goes by a hash of tenant and key. A hit is a candidate: the caller compares the row.

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
use crate::failure::Failure;
use buckets::Buckets;
use building::Building;
use filter::Filter;
use moving::{Frozen, Slice};

/// A hash of tenant and key that nobody can aim at. Its sign means nothing: SQLite's integers have one.
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

/// The keys that are in memory, and what the open transaction did to them.
#[derive(Debug)]
pub(crate) struct Keys {
    limit: usize,
    recent: Buckets,
    frozen: Option<Frozen>,
    /// The newest task whose key ever came by.
    newest: i64,
    /// The task up to which the table is complete, or will be once the frozen keys are moved.
    covered: i64,
    /// What may be in the table; without it, anything.
    filter: Option<Filter>,
    /// A better filter that is on its way.
    building: Option<Building>,
    /// No filter came of it: there will be none until the next opening.
    gave_up_building: bool,
    database: PathBuf,
    undo: Vec<Undo>,
    /// What the open transaction moved.
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
    pub(crate) fn candidates(&self, connection: &Connection, hash: KeyHash) -> Result<Vec<i64>, Failure> {
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

    /// Notes a new task's key.
    pub(crate) fn add(&mut self, connection: &Connection, hash: KeyHash, task: i64) -> Result<(), Failure> {
        if task <= self.covered {
            return self.insert_into_table(connection, &[(hash, task)]);
        }
        self.newest = self.newest.max(task);
        self.recent.insert((hash, task));
        self.undo.push(Undo::Added((hash, task)));
        Ok(())
    }

    /// Forgets a task's key.
    pub(crate) fn remove(&mut self, connection: &Connection, hash: KeyHash, task: i64) -> Result<(), Failure> {
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

    fn insert_into_table(&mut self, connection: &Connection, entries: &[Entry]) -> Result<(), Failure> {
        // A crash may have left some of what is moved again: IGNORE.
        static INSERT: LazyLock<Bulk> = LazyLock::new(|| Bulk::new("INSERT OR IGNORE INTO keys (hash, task)", 2));
        INSERT.insert(connection, entries, |values, (hash, task)| {
            values.put(hash.0)?;
            values.put(task)
        })?;
        // Should this be rolled back, the filter only lets through a little more.
        for (hash, _) in entries {
            self.filter.iter_mut().for_each(|filter| filter.insert(*hash));
            self.building.iter_mut().for_each(|building| building.since.push(*hash));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
