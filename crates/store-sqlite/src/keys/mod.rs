//! Index from idempotency keys to rows: of tasks, and of idempotency records.
//!
//! Keys are random, and an index on disk by a random value costs a page read and a page write for each new row: three
//! times the rest of a task's life. So the newest keys are only in memory. They are moved to the index in bulk and in
//! the index's order, so that each touched page takes many of them:
//!
//! ```text
//! recent ──more than the limit──▶ frozen ──a slice with each commit──▶ the table (`keys`, `record_keys`)
//! ```
//!
//! The table is complete up to a row, the *watermark*, which is written with the last slice. On opening, the keys of all
//! later rows are read again. A task that is older than what is being moved (ids are made before tasks are queued) goes to
//! the table directly, or a restart would miss it.
//!
//! A filter in memory tells whether a key may be in the table at all, so a new key rarely costs a disk access.
//!
//! All lookups use a hash of the key's parts. A hit is a candidate: the caller compares the row.
//!
//! Tasks and records each have their own [`Keys`], with the same code and another [`KeyTable`].

mod buckets;
mod building;
mod filter;
mod load;
mod moving;
mod table;

use std::path::PathBuf;

use redrive_core::idempotency::RecordKey;
use redrive_core::request::Fingerprinter;
use rusqlite::Connection;

use crate::sqlite_error::SqliteError;
use buckets::Buckets;
use building::Building;
use filter::Filter;
use moving::{Frozen, Slice};
pub(crate) use table::{KeyTable, OF_RECORDS, OF_TASKS};

/// A hash of a key for which no collision can be constructed. It is signed only because SQLite's integers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyHash(i64);

impl KeyHash {
    /// The hash of a task's key.
    pub(crate) fn of(tenant: &str, key: &str) -> Self {
        Self::of_parts(&[tenant, key])
    }

    /// The hash of a record's key.
    pub(crate) fn of_record(key: &RecordKey) -> Self {
        Self::of_parts(&[key.tenant.as_str(), &key.operation.to_string(), key.name.as_str()])
    }

    /// The hash of all parts of a key, each with its length.
    pub(crate) fn of_parts(parts: &[&str]) -> Self {
        let digest = parts.iter().fold(Fingerprinter::default(), |hash, part| hash.part(part.as_bytes())).hash();
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        KeyHash(i64::from_le_bytes(first))
    }
}

/// A hash and the row whose key it is.
type Entry = (KeyHash, i64);

/// The keys that are in memory, and the changes of the open transaction.
#[derive(Debug)]
pub(crate) struct Keys {
    table: &'static KeyTable,
    limit: usize,
    recent: Buckets,
    frozen: Option<Frozen>,
    /// The newest row whose key was ever added.
    newest: i64,
    /// The row up to which the table is complete, or will be once the frozen keys are moved.
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
    /// The rows that may have this key.
    pub(crate) fn candidates(&self, connection: &Connection, hash: KeyHash) -> Result<Vec<i64>, SqliteError> {
        let mut owners: Vec<i64> = self.recent.rows(hash).collect();
        if let Some(frozen) = &self.frozen {
            owners.extend(frozen.entries.rows(hash));
        }
        if self.filter.as_ref().is_none_or(|filter| filter.may_contain(hash)) {
            let mut select = connection.prepare_cached(self.table.select)?;
            let mut rows = select.query([hash.0])?;
            while let Some(row) = rows.next()? {
                owners.push(row.get(0)?);
            }
        }
        Ok(owners)
    }

    /// Adds a new row's key.
    pub(crate) fn add(&mut self, connection: &Connection, hash: KeyHash, row: i64) -> Result<(), SqliteError> {
        if row <= self.covered {
            return self.insert_into_table(connection, &[(hash, row)]);
        }
        self.newest = self.newest.max(row);
        self.recent.insert((hash, row));
        self.undo.push(Undo::Added((hash, row)));
        Ok(())
    }

    /// Removes a row's key.
    pub(crate) fn remove(&mut self, connection: &Connection, hash: KeyHash, row: i64) -> Result<(), SqliteError> {
        let entry = (hash, row);
        if self.recent.remove(entry) {
            self.undo.push(Undo::RemovedRecent(entry));
            return Ok(());
        }
        if self.frozen.as_mut().is_some_and(|frozen| frozen.entries.remove(entry)) {
            self.undo.push(Undo::RemovedFrozen(entry));
        }
        connection.prepare_cached(self.table.delete)?.execute((hash.0, row))?;
        Ok(())
    }

    fn insert_into_table(&mut self, connection: &Connection, entries: &[Entry]) -> Result<(), SqliteError> {
        self.table.insert.insert(connection, entries, |values, (hash, row)| {
            values.put(hash.0)?;
            values.put(row)
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
