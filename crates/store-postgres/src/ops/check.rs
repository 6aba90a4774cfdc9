//! Checks that the store can be written to.

use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// A write that changes nothing that is read. It waits longer than a batch for another node that is running the same
/// check.
const CHECK: &str = "
SET LOCAL lock_timeout = '5s';
INSERT INTO redrive.meta (name, value) VALUES ('checks', '1')
ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// A row larger than the free space in the tables, so that it needs space on the disk. It is deleted in the same
/// transaction.
const ROOM: &str = "
SET LOCAL lock_timeout = '5s';
INSERT INTO redrive.meta (name, value)
SELECT 'room', string_agg(md5(n::text), '') FROM generate_series(1, 8192) AS n;
DELETE FROM redrive.meta WHERE name = 'room'";

/// Checks that there is space for more than a few bytes.
pub(crate) async fn room(connection: &Connection) -> Result<(), PostgresError> {
    connection.execute(ROOM).await
}

/// Sent as one text, which PostgreSQL runs as one transaction.
pub(crate) async fn check(connection: &Connection) -> Result<(), PostgresError> {
    connection.execute(CHECK).await
}
