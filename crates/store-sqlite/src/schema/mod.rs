//! The tables, by version, and the migration from each version to the next.
//!
//! A step and the new version number are one transaction: a crash in between leaves the previous version intact. To
//! change the schema, add a file and a line to [`STEPS`]; a released step is never edited.
//!
//! Not here: the check which file may be opened (`open`).

use rusqlite::{Connection, TransactionBehavior};

/// Marks a database file as Redrive's: "RDrv".
pub(crate) const APPLICATION_ID: i32 = 0x5244_7276;

/// The step at index n leads from version n to version n + 1.
const STEPS: &[&str] = &[
    include_str!("v1.sql"),
    include_str!("v2.sql"),
    include_str!("v3.sql"),
    include_str!("v4.sql"),
    include_str!("v5.sql"),
    include_str!("v6.sql"),
    include_str!("v7.sql"),
];

/// The newest version that this program supports.
pub(crate) fn newest() -> i32 {
    version_after(STEPS)
}

/// The version of this database.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Runs the steps that this database has not had.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    take_steps(connection, STEPS)
}

fn take_steps(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let done = usize::try_from(version(connection)?).unwrap_or(0);
    for (from, step) in steps.iter().enumerate().skip(done) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", version_after(&steps[..=from]))?;
        transaction.commit()?;
        tracing::info!(version = version_after(&steps[..=from]), "schema migrated");
    }
    Ok(())
}

fn version_after(steps: &[&str]) -> i32 {
    i32::try_from(steps.len()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
