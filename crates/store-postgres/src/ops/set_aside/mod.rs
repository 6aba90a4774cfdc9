//! Rows that this program cannot read: they are set aside, so that they affect nothing else.
//!
//! Such a row was changed by hand, or a newer program wrote it. A task that is set aside is hidden from claims and from
//! the search for expired leases; nothing is counted and nothing is lost. Unreadable policy versions and blobs block no
//! other row, so they are only recorded. Several programs share the database, and one may read what another cannot. So
//! every process takes back the rows that it can read: at its start, and again every few seconds.

mod list;
mod put;
mod take_back;

pub(crate) use list::list;
pub(crate) use take_back::{RecordKey, Which, take_back};

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use tokio_postgres::Row;

use crate::codec::{Cells, LEASE_UNTIL_COLUMN, TOKEN_COLUMN, Uuid};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// The most rows that one call sets aside; the next call finds the others. A million bad rows must not block a call.
pub(crate) const AT_ONCE: usize = 500;
/// How many logged rows are remembered before the memory is cleared.
const LOGGED: usize = 10_000;

/// A row that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Damaged {
    tenant: String,
    what: What,
    problem: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum What {
    Task(SeenTask),
    /// A policy version, by its number and its policy's name.
    PolicyVersion(String),
    /// A blob, by its record.
    Blob(String),
}

/// A task as it was read. A task that has changed since is not set aside, because another program may be able to read
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SeenTask {
    pub(crate) id: Uuid,
    pub(crate) token: Option<i64>,
    pub(crate) lease_until: Option<i64>,
    /// Whether the call that read it had just claimed it. If so, the attempt is taken back.
    pub(crate) is_claimed: bool,
    /// Whether PostgreSQL refused to change it. Such a row is taken back only at a start, because reading it does not
    /// show whether PostgreSQL still refuses.
    pub(crate) is_refused: bool,
}

impl Damaged {
    pub(crate) fn task(tenant: &str, seen: SeenTask, problem: impl fmt::Display) -> Self {
        Damaged { tenant: tenant.to_owned(), what: What::Task(seen), problem: problem.to_string() }
    }

    /// The task of a row whose first columns are those of a task.
    pub(crate) fn task_row(row: &Row, problem: impl fmt::Display) -> Result<Self, PostgresError> {
        let mut cells = Cells::of(row);
        let (tenant, id) = (cells.get()?, cells.get()?);
        let token = Cells::from(row, TOKEN_COLUMN).get()?;
        let lease_until = Cells::from(row, LEASE_UNTIL_COLUMN).get()?;
        let seen = SeenTask { id, token, lease_until, is_claimed: false, is_refused: false };
        Ok(Damaged::task(tenant, seen, problem))
    }

    pub(crate) fn policy_version(tenant: &str, policy: &str, version: i64, problem: impl fmt::Display) -> Self {
        let what = What::PolicyVersion(format!("{version} {policy}"));
        Damaged { tenant: tenant.to_owned(), what, problem: problem.to_string() }
    }

    pub(crate) fn blob(tenant: &str, record: &str, problem: impl fmt::Display) -> Self {
        Damaged { tenant: tenant.to_owned(), what: What::Blob(record.to_owned()), problem: problem.to_string() }
    }

    /// Marks the task as one that PostgreSQL refused to change.
    pub(crate) fn refused(mut self) -> Self {
        if let What::Task(seen) = &mut self.what {
            seen.is_refused = true;
        }
        self
    }

    fn kind(&self) -> &'static str {
        match self.what {
            What::Task(_) => TASK,
            What::PolicyVersion(_) => POLICY_VERSION,
            What::Blob(_) => BLOB,
        }
    }

    fn name(&self) -> String {
        match &self.what {
            What::Task(seen) => seen.id.to_string(),
            What::PolicyVersion(name) | What::Blob(name) => name.clone(),
        }
    }
}

const TASK: &str = "task";
const POLICY_VERSION: &str = "policy version";
const BLOB: &str = "blob";

/// The value that was read from a row, or `None` if it is unreadable: then the row is added to `damaged`.
pub(crate) fn readable<T>(
    read: Result<T, PostgresError>,
    damaged: &mut Vec<Damaged>,
    note: impl FnOnce(&PostgresError) -> Result<Damaged, PostgresError>,
) -> Result<Option<T>, PostgresError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(failure) if failure.is_about_a_value() => {
            damaged.push(note(&failure)?);
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Sets rows aside for this process, and logs each row once.
pub(crate) struct Aside {
    node: String,
    logged: Mutex<HashSet<(&'static str, String, String)>>,
}

impl Aside {
    pub(crate) fn new(node: &str) -> Self {
        Aside { node: node.to_owned(), logged: Mutex::default() }
    }

    /// Sets rows aside, a bounded number of them; returns how many were not set aside before. Inside a transaction they
    /// are set aside if it commits.
    pub(crate) async fn put(&self, connection: &Connection, damaged: &[Damaged]) -> Result<usize, PostgresError> {
        let mut fresh = 0;
        for damaged in damaged.iter().take(AT_ONCE) {
            if put::put(connection, &self.node, damaged).await? {
                fresh += 1;
                self.log(damaged);
            }
        }
        Ok(fresh)
    }

    /// Sets rows aside outside of a transaction, for a call that must return its other results. A row that cannot be
    /// set aside does not affect the others.
    pub(crate) async fn put_or_warn(&self, connection: &Connection, damaged: &[Damaged]) -> usize {
        let mut fresh = 0;
        for damaged in damaged.iter().take(AT_ONCE) {
            match put::put(connection, &self.node, damaged).await {
                Ok(true) => {
                    fresh += 1;
                    self.log(damaged);
                }
                Ok(false) => {}
                Err(failure) if failure.is_about_a_row() || failure.is_lock_timeout() => {
                    self.log_stuck(damaged, &failure)
                }
                Err(failure) => {
                    tracing::debug!(%failure, "setting rows aside");
                    break;
                }
            }
        }
        fresh
    }

    /// Logs a row that cannot be set aside, once for each row: it is found again and again.
    pub(crate) fn log_stuck(&self, damaged: &Damaged, failure: &PostgresError) {
        let (kind, name, tenant, problem) = (damaged.kind(), damaged.name(), &damaged.tenant, &damaged.problem);
        if self.is_news(kind, tenant, &name) {
            tracing::error!(kind, name, tenant, problem, %failure, "what this program cannot use cannot be set aside either");
        }
    }

    /// Logs an unreadable row that is skipped and is not set aside, once: every scan finds it again.
    pub(crate) fn log_skipped(&self, kind: &'static str, tenant: &str, name: &str, failure: &PostgresError) {
        if self.is_news(kind, tenant, name) {
            tracing::warn!(kind, name, tenant, %failure, "skipped what this program cannot understand");
        }
    }

    fn is_news(&self, kind: &'static str, tenant: &str, name: &str) -> bool {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() >= LOGGED {
            logged.clear();
        }
        logged.insert((kind, tenant.to_owned(), name.to_owned()))
    }

    /// Logs a row that was set aside, once: it may be set aside again and again while a newer program takes it back.
    fn log(&self, damaged: &Damaged) {
        let (kind, name, tenant, problem) = (damaged.kind(), damaged.name(), &damaged.tenant, &damaged.problem);
        if self.is_news(kind, tenant, &name) {
            tracing::error!(kind, name, tenant, problem, "set aside what this program cannot understand");
        } else {
            tracing::debug!(kind, name, tenant, problem, "set aside again what this program cannot understand");
        }
    }
}
