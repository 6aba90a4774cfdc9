//! Deleting a policy that no pending or in-flight task pins.

use redrive_core::{PolicyId, TenantId};
use redrive_store::{DeletePolicy, Expected};

use super::is_as;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

pub(crate) fn delete_policy(
    writer: &mut Writer,
    tenant: &TenantId,
    id: &PolicyId,
    expected: Expected,
) -> Result<DeletePolicy, SqliteError> {
    let connection = &writer.connection;
    let Some(tenant) = writer.names.tenant_key(connection, tenant)? else { return Ok(DeletePolicy::NotFound) };
    // Includes the changes of this transaction so far.
    writer.counters.write(connection)?;
    let (current, live): (Option<u32>, i64) = connection
        .prepare_cached(
            "SELECT max(policy_versions.version), coalesce(sum(policy_uses.live), 0)
             FROM policy_versions LEFT JOIN policy_uses ON policy_uses.version = policy_versions.id
             WHERE tenant = ?1 AND policy = ?2 AND NOT deleted",
        )?
        .query_row((tenant, id.as_str()), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let Some(current) = current else { return Ok(DeletePolicy::NotFound) };
    if !is_as(Some(current), expected) {
        return Ok(DeletePolicy::Conflict(current));
    }
    if live > 0 {
        return Ok(DeletePolicy::Pinned(live.cast_unsigned()));
    }
    // Ended tasks still name their version: the rows are removed after these tasks have been cleaned away.
    let mut mark =
        connection.prepare_cached("UPDATE policy_versions SET deleted = 1 WHERE tenant = ?1 AND policy = ?2")?;
    mark.execute((tenant, id.as_str()))?;
    writer.names.forget();
    Ok(DeletePolicy::Done)
}
