//! Whether the store can be written to.

use crate::connection::Connection;
use crate::failure::Failure;

/// A write that changes nothing that anybody reads.
const CHECK: &str = "
INSERT INTO redrive.meta (name, value) VALUES ('checks', '1')
ON CONFLICT (name) DO UPDATE SET value = excluded.value";

pub(crate) async fn check(connection: &Connection) -> Result<(), Failure> {
    connection.query(CHECK, &[]).await.map(drop)
}
