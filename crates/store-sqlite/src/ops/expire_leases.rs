//! Ends all leases on opening: the directory's lock proves that no running process holds one.

use rusqlite::Connection;

use crate::sqlite_error::SqliteError;

/// Expires all leases; returns how many there were.
pub(crate) fn expire_leases(connection: &Connection) -> Result<usize, SqliteError> {
    Ok(connection.execute("UPDATE tasks INDEXED BY tasks_in_flight SET lease_until = 0 WHERE status = 3", [])?)
}
