//! All versions of one policy, or one of them.

use redrive_core::task::PolicyRef;
use redrive_core::{PolicyId, TenantId};
use redrive_store::PolicyVersion;

use super::read;
use crate::ops::set_aside::{Damaged, readable};
use crate::readers::Reader;
use crate::sqlite_error::SqliteError;

/// The versions that can be read. Fails if the current one cannot, because an older one must not replace it.
pub(crate) fn policy(
    reader: &mut Reader,
    tenant: &TenantId,
    id: &PolicyId,
    damaged: &mut Vec<Damaged>,
) -> Result<Vec<PolicyVersion>, SqliteError> {
    let Reader { connection, names } = reader;
    let Some(tenant) = names.tenant_key(connection, tenant)? else { return Ok(Vec::new()) };
    let mut select = connection.prepare_cached(
        "SELECT policy, version, spec, created_at, id FROM policy_versions
         WHERE tenant = ?1 AND policy = ?2 AND NOT deleted
         ORDER BY version",
    )?;
    let mut rows = select.query((tenant, id.as_str()))?;
    let mut versions = Vec::new();
    let mut current = Ok(());
    while let Some(row) = rows.next()? {
        let key = row.get(4)?;
        let read = read(row);
        current = read.as_ref().map(drop).map_err(|failure| SqliteError::corrupt("the current version", failure));
        versions.extend(readable(read, damaged, |problem| Damaged::policy_version(key, problem))?);
    }
    current.map(|()| versions)
}

/// This version, if it exists.
pub(crate) fn policy_version(
    reader: &mut Reader,
    tenant: &TenantId,
    policy: &PolicyRef,
) -> Result<Option<PolicyVersion>, SqliteError> {
    let Reader { connection, names } = reader;
    let Some(tenant) = names.tenant_key(connection, tenant)? else { return Ok(None) };
    let mut select = connection.prepare_cached(
        "SELECT policy, version, spec, created_at FROM policy_versions
         WHERE tenant = ?1 AND policy = ?2 AND version = ?3 AND NOT deleted",
    )?;
    let mut rows = select.query((tenant, policy.id.as_str(), policy.version))?;
    rows.next()?.map(read).transpose()
}
