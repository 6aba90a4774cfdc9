//! Reading the newest keys again, on opening.

use std::path::Path;

use rusqlite::{Connection, Row};

use super::buckets::Buckets;
use super::building::Building;
use super::filter::Filter;
use super::{KeyHash, Keys};
use crate::failure::Failure;
use crate::ops::meta::{self, Name};

/// Below every task.
const NOTHING_COVERED: i64 = -1;

impl Keys {
    /// The keys of all tasks that the table does not cover; `limit` is how many are kept in memory from now on.
    /// `database` is the file that `connection` has open.
    pub(crate) fn load(connection: &Connection, database: &Path, limit: usize) -> Result<Self, Failure> {
        let watermark = meta::get(connection, Name::KeysCompleteUpTo)?;
        let covered = watermark.unwrap_or(NOTHING_COVERED);
        let mut keys = Keys {
            limit: limit.max(1),
            recent: Buckets::for_about(limit),
            frozen: None,
            newest: covered,
            covered,
            // Where nothing was ever moved, what is in the table is also in memory.
            filter: watermark.is_none().then(|| Filter::for_about(0)),
            building: None,
            gave_up_building: false,
            database: database.to_owned(),
            undo: Vec::new(),
            slice: None,
        };
        if keys.filter.is_none() {
            keys.start_building();
        }
        // CROSS, so that the order of the loops is the order given here: tasks by id, from the watermark on.
        let mut select = connection.prepare(
            "SELECT tasks.id, tenants.name, tasks.idempotency_key
             FROM tasks CROSS JOIN tenants ON tenants.id = tasks.tenant
             WHERE tasks.id > ?1
             ORDER BY tasks.id",
        )?;
        let mut rows = select.query([covered])?;
        while let Some(row) = rows.next()? {
            let task = row.get(0)?;
            let hash = hash_of(row).map_err(|error| Failure::corrupt(format_args!("key of task {task}"), error))?;
            keys.recent.insert((hash, task));
            keys.newest = task;
        }
        Ok(keys)
    }

    /// Begins to make a filter of all that is in the table.
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

fn hash_of(row: &Row<'_>) -> Result<KeyHash, rusqlite::Error> {
    Ok(KeyHash::of(row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?))
}
