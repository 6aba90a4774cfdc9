//! Storing a policy: its first version or its next one.

use redrive_core::{PolicyId, TenantId, Timestamp, policy};
use redrive_store::{Expected, PolicyVersion, PutPolicy};
use rusqlite::{Connection, OptionalExtension};

use super::{Current, is_as};
use crate::codec::millis;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

/// `json` is `spec` as text: two specs are equal if their texts are.
pub(crate) fn put_policy(
    writer: &mut Writer,
    tenant: &TenantId,
    id: PolicyId,
    (spec, json): (policy::Spec, &str),
    expected: Expected,
    now: Timestamp,
) -> Result<PutPolicy, SqliteError> {
    let key = writer.names.tenant_key(&writer.connection, tenant)?;
    let current = match key {
        Some(key) => current(&writer.connection, key, &id)?,
        None => None,
    };
    if !is_as(current.as_ref().map(|current| current.version), expected) {
        return Ok(PutPolicy::Conflict(current.map(|current| current.version)));
    }
    if let Some(same) = current.as_ref().filter(|current| current.spec == json) {
        let version = PolicyVersion { id, version: same.version, spec, created_at: same.created_at };
        return Ok(PutPolicy::Unchanged(version));
    }
    let tenant = writer.names.tenant_key_or_new(&writer.connection, tenant)?;
    let version = next_version(&writer.connection, tenant, &id)?;
    let mut insert = writer.connection.prepare_cached(
        "INSERT INTO policy_versions (tenant, policy, version, spec, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    insert.execute((tenant, id.as_str(), version, json, millis(now)))?;
    let made = PolicyVersion { id, version, spec, created_at: now };
    Ok(if current.is_some() { PutPolicy::Updated(made) } else { PutPolicy::Created(made) })
}

fn current(connection: &Connection, tenant: i64, id: &PolicyId) -> Result<Option<Current>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT version, spec, created_at FROM policy_versions
         WHERE tenant = ?1 AND policy = ?2 AND NOT deleted
         ORDER BY version DESC
         LIMIT 1",
    )?;
    let current = select.query_row((tenant, id.as_str()), |row| {
        Ok(Current { version: row.get(0)?, spec: row.get(1)?, created_at: Timestamp::from_millis(row.get(2)?) })
    });
    Ok(current.optional()?)
}

/// The next version. A version number is never used twice, not even after the policy was deleted.
fn next_version(connection: &Connection, tenant: i64, id: &PolicyId) -> Result<u32, SqliteError> {
    let mut upsert = connection.prepare_cached(
        "INSERT INTO policies (tenant, policy, newest) VALUES (?1, ?2, 1)
         ON CONFLICT DO UPDATE SET newest = newest + 1
         RETURNING newest",
    )?;
    Ok(upsert.query_row((tenant, id.as_str()), |row| row.get(0))?)
}
