//! Reading the newest keys into memory, on opening.

use std::path::Path;

use rusqlite::{Connection, Row};

use super::buckets::Buckets;
use super::building::Building;
use super::filter::Filter;
use super::moving::Frozen;
use super::{KeyHash, Keys};
use crate::ops::meta::{self, Name};
use crate::sqlite_error::SqliteError;

/// A number below every task.
const NOTHING: i64 = -1;

impl Keys {
    /// Reads the keys of all tasks that the table does not cover; `limit` is how many are kept in memory from now on.
    /// `database` is the file that `connection` has open.
    pub(crate) fn load(connection: &Connection, database: &Path, limit: usize) -> Result<Self, SqliteError> {
        let watermark = meta::get(connection, Name::KeysCompleteUpTo)?;
        let complete = watermark.unwrap_or(NOTHING);
        let moving = meta::get(connection, Name::KeysMovingUpTo)?.filter(|moving| *moving > complete);
        let covered = moving.unwrap_or(complete);
        let (mut frozen, mut recent) = (Buckets::for_about(limit), Buckets::for_about(limit));
        let newest = read_after(connection, complete, |hash, task| {
            if task <= covered { frozen.insert((hash, task)) } else { recent.insert((hash, task)) }
        })?;
        let next = match meta::get(connection, Name::KeysMovedBefore)? {
            Some(hash) => frozen.bucket_of(KeyHash(hash)),
            None => 0,
        };
        let mut keys = Keys {
            limit: limit.max(1),
            recent,
            frozen: moving.map(|_| Frozen { entries: frozen, next }),
            newest: newest.unwrap_or(covered),
            covered,
            // If no key was ever moved, the table is empty.
            filter: (covered == NOTHING).then(|| Filter::for_about(0)),
            building: None,
            gave_up_building: false,
            database: database.to_owned(),
            undo: Vec::new(),
            slice: None,
        };
        keys.freeze_what_is_too_much();
        if keys.filter.is_none() {
            keys.start_building();
        }
        Ok(keys)
    }

    /// Starts building a filter of everything in the table.
    pub(super) fn start_building(&mut self) {
        match Building::start(self.database.clone()) {
            Ok(building) => self.building = Some(building),
            Err(error) => {
                tracing::warn!(%error, "no thread to make a filter of idempotency keys");
                self.gave_up_building = true;
            }
        }
    }
}

/// Passes the key of each task after `task` to `take`; returns the last of these tasks.
fn read_after(
    connection: &Connection,
    task: i64,
    mut take: impl FnMut(KeyHash, i64),
) -> Result<Option<i64>, SqliteError> {
    // CROSS, so that SQLite keeps the order of the loops.
    let mut select = connection.prepare(
        "SELECT tasks.id, tenants.name, tasks.idempotency_key
         FROM tasks CROSS JOIN tenants ON tenants.id = tasks.tenant
         WHERE tasks.id > ?1
         ORDER BY tasks.id",
    )?;
    let mut rows = select.query([task])?;
    let mut last = None;
    while let Some(row) = rows.next()? {
        let task = row.get(0)?;
        match hash_of(row) {
            Ok(hash) => take(hash, task),
            // No call can look this key up.
            Err(error) => tracing::error!(task, %error, "the idempotency key of a task cannot be understood"),
        }
        last = Some(task);
    }
    Ok(last)
}

fn hash_of(row: &Row<'_>) -> Result<KeyHash, rusqlite::Error> {
    Ok(KeyHash::of(row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?))
}
