//! The current version of each policy.

use redrive_core::{PolicyId, TenantId};
use redrive_store::PolicyVersion;

use super::read;
use crate::ops::set_aside::{Damaged, readable};
use crate::readers::Reader;
use crate::sqlite_error::SqliteError;

pub(crate) fn policies(
    reader: &mut Reader,
    tenant: &TenantId,
    after: Option<&PolicyId>,
    limit: usize,
    damaged: &mut Vec<Damaged>,
) -> Result<Vec<PolicyVersion>, SqliteError> {
    let Reader { connection, names } = reader;
    let Some(tenant) = names.tenant_key(connection, tenant)? else { return Ok(Vec::new()) };
    // With max(), SQLite takes the other columns from the row that has the maximum.
    let mut select = connection.prepare_cached(
        "SELECT policy, max(version), spec, created_at, id FROM policy_versions
         WHERE tenant = ?1 AND policy > ?2 AND NOT deleted
         GROUP BY policy
         ORDER BY policy
         LIMIT ?3",
    )?;
    let after = after.map_or("", PolicyId::as_str);
    let mut rows = select.query((tenant, after, i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let mut policies = Vec::new();
    while let Some(row) = rows.next()? {
        let key = row.get(4)?;
        policies.extend(readable(read(row), damaged, |problem| Damaged::policy_version(key, problem))?);
    }
    Ok(policies)
}
