//! Moving keys from memory to the table, a slice with each commit.
//!
//! A slice is somewhat larger than what the commit adds, so the frozen keys are moved before as many recent ones have
//! come. Memory holds at most twice the limit, and every commit does about the same work. The progress is stored with
//! each slice, or a process that is restarted often would start over each time and never finish.

use rusqlite::Connection;

use super::buckets::Buckets;
use super::filter::Filter;
use super::{Entry, Keys, Undo};
use crate::ops::meta;
use crate::sqlite_error::SqliteError;

/// The least number of keys that a commit moves while there are frozen ones.
const SLICE: usize = 64;

/// Keys that are being moved to the table; looked up here until all are moved.
#[derive(Debug)]
pub(super) struct Frozen {
    pub(super) entries: Buckets,
    /// The first bucket that has not been moved.
    pub(super) next: usize,
}

/// The part that one transaction moved.
#[derive(Debug, Clone, Copy)]
pub(super) enum Slice {
    /// All buckets before this one have been moved.
    Before(usize),
    /// The last buckets have been moved.
    Final,
}

impl Keys {
    /// Moves a slice into the open transaction.
    pub(crate) fn write_slice(&mut self, connection: &Connection) -> Result<(), SqliteError> {
        let Some((entries, slice)) = self.next_slice() else { return Ok(()) };
        self.insert_into_table(connection, &entries)?;
        let names = &self.table.names;
        match (slice, &self.frozen) {
            (Slice::Before(next), Some(frozen)) => {
                meta::set(connection, names.moving_up_to, self.covered)?;
                meta::set(connection, names.moved_before, frozen.entries.first_hash(next).0)?;
            }
            _ => meta::set(connection, names.complete_up_to, self.covered)?,
        }
        self.slice = Some(slice);
        Ok(())
    }

    /// The keys to move now, in the order of the table.
    fn next_slice(&self) -> Option<(Vec<Entry>, Slice)> {
        let frozen = self.frozen.as_ref()?;
        let size = SLICE.max(self.undo.len() + self.undo.len() / 4);
        let mut entries = Vec::with_capacity(2 * size);
        let mut next = frozen.next;
        while entries.len() < size {
            let Some(bucket) = frozen.entries.sorted(next) else { return Some((entries, Slice::Final)) };
            entries.extend(bucket);
            next += 1;
        }
        Some((entries, Slice::Before(next)))
    }

    /// Follows a commit of the open transaction.
    pub(crate) fn committed(&mut self) {
        self.undo.clear();
        match self.slice.take() {
            Some(Slice::Final) => self.frozen = None,
            Some(Slice::Before(next)) => self.frozen.iter_mut().for_each(|frozen| frozen.next = next),
            None => {}
        }
        self.freeze_what_is_too_much();
        self.improve_filter();
    }

    pub(super) fn freeze_what_is_too_much(&mut self) {
        if self.frozen.is_none() && self.recent.len() > self.limit {
            let entries = std::mem::replace(&mut self.recent, Buckets::for_about(self.limit));
            self.frozen = Some(Frozen { entries, next: 0 });
            self.covered = self.newest;
        }
    }

    fn improve_filter(&mut self) {
        if let Some(building) = self.building.take_if(|building| building.is_finished()) {
            match building.finish() {
                Some(better) => self.filter = Some(better),
                None => self.gave_up_building = true,
            }
        }
        let wants_better = self.filter.as_ref().is_some_and(Filter::is_crowded);
        if wants_better && self.building.is_none() && !self.gave_up_building {
            self.start_building();
        }
    }

    /// Follows a rollback of the open transaction.
    pub(crate) fn rolled_back(&mut self) {
        self.slice = None;
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Added(entry) => {
                    self.recent.remove(entry);
                }
                Undo::RemovedRecent(entry) => self.recent.insert(entry),
                Undo::RemovedFrozen(entry) => self.frozen.iter_mut().for_each(|frozen| frozen.entries.insert(entry)),
            }
        }
    }
}
