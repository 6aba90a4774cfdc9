//! The identity of the blob storage that has the bodies of this database's tasks.

use redrive_store::BlobStorageId;
use tokio_postgres::types::Type;

use crate::codec::Cells;
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// The first process to record its storage wins; the others read it.
const RECORD: &str = "
INSERT INTO redrive.meta (name, value) VALUES ('body_place', $1)
ON CONFLICT (name) DO NOTHING";

const RECORDED: &str = "SELECT value FROM redrive.meta WHERE name = 'body_place'";

/// Two statements, because a single one would not read a row for whose commit it had to wait.
pub(crate) async fn blob_storage_id(
    connection: &Connection,
    mine: Option<BlobStorageId>,
) -> Result<Option<BlobStorageId>, PostgresError> {
    if let Some(mine) = mine {
        connection.query(RECORD, &[(&mine.to_string(), Type::TEXT)]).await?;
    }
    let rows = connection.query(RECORDED, &[]).await?;
    rows.first().map(|row| Cells::of(row).parsed(|text| text.parse().ok())).transpose()
}
