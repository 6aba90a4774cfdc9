//! Counters: the numbers of tasks by status and per policy version, so that no query has to count rows.
//!
//! The changes of a transaction are added up in memory and written once, before the commit.

use std::collections::BTreeMap;

use redrive_core::Status;
use rusqlite::Connection;

use crate::codec::status_code;
use crate::sqlite_error::SqliteError;

/// The changes of the open transaction.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// The change of the number of tasks, by tenant and status.
    tasks: BTreeMap<(i64, i64), i64>,
    /// The change of the uses, by policy version.
    versions: BTreeMap<i64, Uses>,
}

#[derive(Debug, Default)]
struct Uses {
    kept: i64,
    live: i64,
}

impl Counters {
    /// Counts a new task in `status`.
    pub(crate) fn added(&mut self, tenant: i64, version: i64, status: Status) {
        self.change(tenant, version, status, 1);
        self.versions.entry(version).or_default().kept += 1;
    }

    /// Counts a task that changed its status.
    pub(crate) fn moved(&mut self, tenant: i64, version: i64, from: Status, to: Status) {
        self.change(tenant, version, from, -1);
        self.change(tenant, version, to, 1);
    }

    /// Counts a removed task that was in `status`.
    pub(crate) fn removed(&mut self, tenant: i64, version: i64, status: Status) {
        self.change(tenant, version, status, -1);
        self.versions.entry(version).or_default().kept -= 1;
    }

    /// Writes the changes into the open transaction, so that a rollback undoes them.
    pub(crate) fn write(&mut self, connection: &Connection) -> Result<(), SqliteError> {
        let mut count = connection.prepare_cached(
            "INSERT INTO task_counts (tenant, status, tasks) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET tasks = tasks + excluded.tasks",
        )?;
        for (&(tenant, status), &change) in self.tasks.iter().filter(|(_, change)| **change != 0) {
            count.execute((tenant, status, change))?;
        }
        let mut uses = connection.prepare_cached(
            "INSERT INTO policy_uses (version, kept, live) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET kept = kept + excluded.kept, live = live + excluded.live",
        )?;
        for (&version, change) in self.versions.iter().filter(|(_, change)| change.kept != 0 || change.live != 0) {
            uses.execute((version, change.kept, change.live))?;
        }
        self.clear();
        Ok(())
    }

    /// Drops the changes that were not written.
    pub(crate) fn clear(&mut self) {
        self.tasks.clear();
        self.versions.clear();
    }

    fn change(&mut self, tenant: i64, version: i64, status: Status, by: i64) {
        *self.tasks.entry((tenant, status_code(status))).or_default() += by;
        if !status.is_ended() {
            self.versions.entry(version).or_default().live += by;
        }
    }
}
