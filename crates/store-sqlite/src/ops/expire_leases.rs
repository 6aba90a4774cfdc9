//! Ending all leases, on opening: the directory's lock says that nobody is left who could hold one.

use rusqlite::Connection;

use crate::failure::Failure;

/// Returns how many there were.
pub(crate) fn expire_leases(connection: &Connection) -> Result<usize, Failure> {
    Ok(connection.execute("UPDATE tasks INDEXED BY tasks_in_flight SET lease_until = 0 WHERE status = 3", [])?)
}
