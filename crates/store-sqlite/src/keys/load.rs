//! Reading the newest keys into memory, on opening.

use std::path::Path;

use rusqlite::{Connection, Row};

use super::buckets::Buckets;
use super::building::Building;
use super::filter::Filter;
use super::moving::Frozen;
use super::{KeyHash, KeyTable, Keys};
use crate::ops::meta;
use crate::sqlite_error::SqliteError;

/// A number below every row.
const NOTHING: i64 = -1;

impl Keys {
    /// Reads the keys of all rows that the table does not cover; `limit` is how many are kept in memory from now on.
    /// `database` is the file that `connection` has open.
    pub(crate) fn load(
        table: &'static KeyTable,
        connection: &Connection,
        database: &Path,
        limit: usize,
    ) -> Result<Self, SqliteError> {
        let watermark = meta::get(connection, table.names.complete_up_to)?;
        let complete = watermark.unwrap_or(NOTHING);
        let moving = meta::get(connection, table.names.moving_up_to)?.filter(|moving| *moving > complete);
        let covered = moving.unwrap_or(complete);
        let (mut frozen, mut recent) = (Buckets::for_about(limit), Buckets::for_about(limit));
        let newest = read_after(table, connection, complete, |hash, row| {
            if row <= covered { frozen.insert((hash, row)) } else { recent.insert((hash, row)) }
        })?;
        let next = match meta::get(connection, table.names.moved_before)? {
            Some(hash) => frozen.bucket_of(KeyHash(hash)),
            None => 0,
        };
        let mut keys = Keys {
            table,
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
        match Building::start(self.table, self.database.clone()) {
            Ok(building) => self.building = Some(building),
            Err(error) => {
                tracing::warn!(%error, "no thread to make a filter of idempotency keys");
                self.gave_up_building = true;
            }
        }
    }
}

/// Passes the key of each row after `row` to `take`; returns the last of these rows.
fn read_after(
    table: &KeyTable,
    connection: &Connection,
    row: i64,
    mut take: impl FnMut(KeyHash, i64),
) -> Result<Option<i64>, SqliteError> {
    let mut select = connection.prepare(table.rows_after)?;
    let columns = select.column_count();
    let mut rows = select.query([row])?;
    let mut last = None;
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        match hash_of(row, columns) {
            Ok(hash) => take(hash, id),
            // No call can look this key up.
            Err(error) => tracing::error!(of = table.of, id, %error, "an idempotency key cannot be understood"),
        }
        last = Some(id);
    }
    Ok(last)
}

fn hash_of(row: &Row<'_>, columns: usize) -> Result<KeyHash, rusqlite::Error> {
    let parts: Vec<&str> =
        (1..columns).map(|column| Ok(row.get_ref(column)?.as_str()?)).collect::<Result<_, rusqlite::Error>>()?;
    Ok(KeyHash::of_parts(&parts))
}
