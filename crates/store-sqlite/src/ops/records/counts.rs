//! How many records each operation of a tenant has in each state.

use redrive_core::TenantId;
use redrive_core::idempotency::{Operation, State};
use redrive_store::OperationCounts;
use rusqlite::Connection;

use crate::codec::state_code;
use crate::readers::Reader;
use crate::sqlite_error::SqliteError;

pub(crate) const OPERATIONS_AFTER: &str =
    "SELECT id, name FROM operations WHERE tenant = ?1 AND name > ?2 ORDER BY name";

/// Counts entries of the index alone, so the records are not read: one that is unreadable counts for its state.
pub(crate) const COUNT: &str =
    "SELECT count(*) FROM (SELECT 1 FROM records WHERE operation = ?1 AND state = ?2 LIMIT ?3)";

pub(crate) fn counts(
    reader: &mut Reader,
    tenant: &TenantId,
    after: Option<&Operation>,
    limit: usize,
    most: u32,
) -> Result<Vec<OperationCounts>, SqliteError> {
    let Reader { connection, names } = reader;
    let mut found = Vec::new();
    let Some(tenant) = names.tenant_key(connection, tenant)? else { return Ok(found) };
    let mut select = connection.prepare_cached(OPERATIONS_AFTER)?;
    let mut rows = select.query((tenant, after.map(Operation::to_string).unwrap_or_default()))?;
    while found.len() < limit {
        let Some(row) = rows.next()? else { break };
        // A name that cannot be read belongs to no operation that a caller could ask for.
        let Some(operation) = row.get_ref(1)?.as_str().ok().and_then(|name| name.parse().ok()) else { continue };
        found.extend(count(connection, row.get(0)?, operation, most)?);
    }
    Ok(found)
}

/// The records of one operation, `None` if there are none.
fn count(
    connection: &Connection,
    number: i64,
    operation: Operation,
    most: u32,
) -> Result<Option<OperationCounts>, SqliteError> {
    let mut select = connection.prepare_cached(COUNT)?;
    let mut counts = OperationCounts::none(operation);
    let mut has_records = false;
    for state in State::ALL {
        let Some(count) = counts.of_mut(state) else { continue };
        let counted: u32 = select.query_row((number, state_code(state), most.max(1)), |row| row.get(0))?;
        has_records |= counted > 0;
        *count = counted.min(most);
    }
    Ok(has_records.then_some(counts))
}
