//! How many tasks a tenant has in each status.

use redrive_core::TenantId;
use redrive_store::Counts;

use crate::codec::status;
use crate::readers::Reader;
use crate::sqlite_error::SqliteError;

pub(crate) fn counts(reader: &mut Reader, tenant: &TenantId) -> Result<Counts, SqliteError> {
    let Reader { connection, names } = reader;
    let Some(tenant) = names.tenant_key(connection, tenant)? else { return Ok(Counts::new()) };
    let mut select =
        connection.prepare_cached("SELECT status, tasks FROM task_counts WHERE tenant = ?1 AND tasks > 0")?;
    let mut rows = select.query([tenant])?;
    let mut counts = Counts::new();
    while let Some(row) = rows.next()? {
        if let Some(status) = status(row.get(0)?) {
            counts.insert(status, row.get(1)?);
        }
    }
    Ok(counts)
}
