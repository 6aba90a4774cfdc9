//! Plain successes, the most common settlement, written for many tasks at once.

use rusqlite::Connection;

use super::{Ending, log};
use crate::codec::{millis, sequence};
use crate::sqlite_error::SqliteError;

/// Writes the changes of plain successes. Each task is in flight under this very claim, as the writer's memory shows.
pub(crate) fn write(connection: &Connection, successes: &mut [Ending]) -> Result<(), SqliteError> {
    successes.sort_unstable_by_key(|ending| ending.end.id);
    let mut update = connection
        .prepare_cached("UPDATE tasks SET status = 4, next_attempt_at = NULL, ended_at = ?2 WHERE id = ?1")?;
    for Ending { end, .. } in &*successes {
        update.execute((sequence(end.id), millis(end.at)))?;
    }
    log::write(connection, successes)
}
