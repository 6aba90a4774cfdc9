//! What the writing thread owns.
//!
//! Besides the connection there is memory that mirrors the database. Each part of it follows the transaction: it takes
//! part in the commit, and drops what was rolled back.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use redrive_core::Lane;
use redrive_core::guards::Snapshot;
use redrive_store::Error;
use redrive_store::group_commit::Backend;
use rusqlite::Connection;

use crate::checkpointer::Checkpointer;
use crate::connection;
use crate::counters::Counters;
use crate::in_flight::InFlight;
use crate::keys::Keys;
use crate::names::Names;
use crate::ops::{guard_states, settle, submit};
use crate::pending_guards::PendingGuards;
use crate::sqlite_error::SqliteError;

/// The one connection that writes, and the memory that mirrors its data.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) names: Names,
    /// The keys of tasks, and those of idempotency records.
    pub(crate) keys: Keys,
    pub(crate) record_keys: Keys,
    pub(crate) counters: Counters,
    pub(crate) in_flight: InFlight,
    pub(crate) unwritten: Unwritten,
    /// States of guards that wait for a commit, and those in the open transaction.
    pending_guards: PendingGuards,
    guards: BTreeMap<Lane, Option<Snapshot>>,
    /// SQLite's count of changes when the open transaction began: a job may change nothing.
    changes_before: u64,
    /// Dropped after the connection, so that its last checkpoint is not blocked.
    checkpointer: Checkpointer,
}

/// Rows of the open transaction that are decided and not written yet.
///
/// Most jobs have one task, and looking up a prepared statement for each of its rows costs as much as some of the rows.
/// So the rows of a whole batch are gathered here and written table by table, before the commit or before a job reads
/// them.
#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    pub(crate) tasks: Vec<submit::Row>,
    pub(crate) successes: Vec<settle::Ending>,
}

/// One of the items of a job. The job keeps all items, because it may have to run again.
#[derive(Debug)]
pub(crate) struct OneOf<T> {
    pub(crate) all: Arc<[T]>,
    pub(crate) index: usize,
}

impl<T> Clone for OneOf<T> {
    fn clone(&self) -> Self {
        OneOf { all: self.all.clone(), index: self.index }
    }
}

impl<T> Deref for OneOf<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.all[self.index]
    }
}

impl Writer {
    pub(crate) fn new(
        connection: Connection,
        (keys, record_keys): (Keys, Keys),
        checkpointer: Checkpointer,
        pending_guards: PendingGuards,
    ) -> Self {
        Writer {
            connection,
            names: Names::default(),
            keys,
            record_keys,
            counters: Counters::default(),
            in_flight: InFlight::default(),
            unwritten: Unwritten::default(),
            pending_guards,
            guards: BTreeMap::new(),
            changes_before: 0,
            checkpointer,
        }
    }

    /// Writes the gathered rows, before a task's row is read or changed.
    pub(crate) fn write_rows(&mut self) -> Result<(), SqliteError> {
        let Unwritten { tasks, successes } = &mut self.unwritten;
        if !tasks.is_empty() {
            submit::write(&self.connection, tasks)?;
            tasks.clear();
        }
        if !successes.is_empty() {
            settle::write(&self.connection, successes)?;
            successes.clear();
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SqliteError> {
        self.write_rows()?;
        self.keys.write_slice(&self.connection)?;
        self.record_keys.write_slice(&self.connection)?;
        self.counters.write(&self.connection)?;
        if self.connection.total_changes() != self.changes_before {
            self.guards = self.pending_guards.take();
            if !self.guards.is_empty() {
                guard_states::write(&self.connection, &self.guards)?;
            }
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }
}

impl Backend for Writer {
    fn begin(&mut self) -> Result<(), Error> {
        if self.checkpointer.wants_restart()
            && let Err(failure) = connection::restart_log(&self.connection)
        {
            // Not a reason to reject work: on a broken disk the commit fails.
            let error = failure.into_error("restarting the log");
            tracing::warn!(%error, "the log could not be restarted and goes on growing");
        }
        self.changes_before = self.connection.total_changes();
        let begun = self.connection.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([]));
        begun.map_err(|error| SqliteError::from(error).into_error("beginning a transaction")).map(drop)
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.finish().map_err(|failure| failure.into_error("committing a transaction"))?;
        self.keys.committed();
        self.record_keys.committed();
        self.names.committed();
        self.guards.clear();
        if self.connection.total_changes() != self.changes_before {
            self.checkpointer.committed();
        }
        Ok(())
    }

    fn rollback(&mut self) {
        self.keys.rolled_back();
        self.record_keys.rolled_back();
        self.names.rolled_back();
        self.counters.clear();
        self.in_flight.rolled_back();
        self.unwritten = Unwritten::default();
        self.pending_guards.give_back(std::mem::take(&mut self.guards));
        // After some errors, a full disk among them, SQLite has rolled back already.
        if self.connection.is_autocommit() {
            return;
        }
        if let Err(error) = self.connection.execute_batch("ROLLBACK") {
            let error = SqliteError::from(error).into_error("rolling back");
            tracing::error!(%error, "a rollback failed");
        }
    }
}
