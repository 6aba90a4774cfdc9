//! All versions of one policy.

use redrive_core::{PolicyId, TenantId};
use redrive_store::PolicyVersion;

use super::read;
use crate::failure::Failure;
use crate::readers::Reader;

pub(crate) fn policy(reader: &mut Reader, tenant: &TenantId, id: &PolicyId) -> Result<Vec<PolicyVersion>, Failure> {
    let Reader { connection, names } = reader;
    let Some(tenant) = names.tenant_key(connection, tenant)? else { return Ok(Vec::new()) };
    let mut select = connection.prepare_cached(
        "SELECT policy, version, spec, created_at FROM policy_versions
         WHERE tenant = ?1 AND policy = ?2 AND NOT deleted
         ORDER BY version",
    )?;
    let mut rows = select.query((tenant, id.as_str()))?;
    let mut versions = Vec::new();
    while let Some(row) = rows.next()? {
        versions.push(read(row)?);
    }
    Ok(versions)
}
