//! Whether the store can be written to.

use crate::connection::Connection;
use crate::failure::Failure;

/// A write that changes nothing that anybody reads. It waits longer than a batch does for another node that is just at it.
const CHECK: &str = "
SET LOCAL lock_timeout = '5s';
INSERT INTO redrive.meta (name, value) VALUES ('checks', '1')
ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// Sent as one text, which PostgreSQL runs as one transaction.
pub(crate) async fn check(connection: &Connection) -> Result<(), Failure> {
    connection.execute(CHECK).await
}
