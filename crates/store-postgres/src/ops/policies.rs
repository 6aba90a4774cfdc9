//! Policies and their versions.
//!
//! Writers of one policy are serialized by a lock on its row in `policies`. A transaction that makes a task pin a
//! version locks that version against deletion (`FOR KEY SHARE`) until it commits.

use redrive_core::task::PolicyRef;
use redrive_core::{Policy, PolicyId, TenantId, Timestamp, policy};
use redrive_store::{DeletePolicy, Expected, PolicyVersion, PutPolicy};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::{Cells, millis, whole_millis};
use crate::connection::Connection;
use crate::ops::set_aside::{Aside, Damaged, readable};
use crate::postgres_error::PostgresError;

/// A policy to put, with the values that follow from its fields.
pub(crate) struct Put {
    pub(crate) tenant: TenantId,
    pub(crate) id: PolicyId,
    pub(crate) spec: policy::Spec,
    /// The spec as text: two specs are equal if their texts are.
    pub(crate) json: String,
    /// The settings that a task takes from it, for `redrive.enqueue`; `None` if the spec is invalid.
    pub(crate) resolved: Option<Policy>,
    pub(crate) expected: Expected,
    pub(crate) now: Timestamp,
}

const LOCK: &str = "
INSERT INTO redrive.policies (tenant, policy, newest) VALUES ($1, $2, 0)
ON CONFLICT (tenant, policy) DO UPDATE SET newest = policies.newest
RETURNING newest";

const CURRENT: &str = "
SELECT policy, version, spec, created_at FROM redrive.policy_versions
WHERE tenant = $1 AND policy = $2 AND NOT deleted
ORDER BY version DESC
LIMIT 1";

const INSERT: &str = "
WITH next AS (
    UPDATE redrive.policies SET newest = $3 WHERE tenant = $1 AND policy = $2
)
INSERT INTO redrive.policy_versions (
    tenant, policy, version, created_at, max_attempts, attempt_timeout_ms, total_budget_ms, spec
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

/// Runs inside a transaction.
pub(crate) async fn put(connection: &Connection, put: &Put) -> Result<PutPolicy, PostgresError> {
    let (tenant, id) = (put.tenant.as_str(), put.id.as_str());
    let key = || [(&tenant as _, Type::TEXT), (&id as _, Type::TEXT)];
    let newest: i64 = match connection.query(LOCK, &key()).await?.first() {
        Some(row) => Cells::of(row).get()?,
        None => return Err(PostgresError::corrupt("policies", "a row that was written is not there")),
    };
    let current = connection.query(CURRENT, &key()).await?;
    // An unreadable spec is repaired by a new version, so the old one is not read.
    let current_version: Option<u32> = current.first().map(|row| Cells::from(row, 1).narrow()).transpose()?;
    if !is_as(current_version, put.expected) {
        return Ok(PutPolicy::Conflict(current_version));
    }
    let current_spec: Option<&str> = current.first().map(|row| Cells::from(row, 2).get()).transpose()?;
    if let Some(same) = current.first().filter(|_| current_spec == Some(put.json.as_str())) {
        return Ok(PutPolicy::Unchanged(PolicyVersion { spec: put.spec.clone(), ..read(same)? }));
    }
    let version = newest + 1;
    let [tenant, id] = key();
    let resolved = put.resolved.as_ref();
    connection
        .query(
            INSERT,
            &[
                tenant,
                id,
                (&version, Type::INT8),
                (&millis(put.now), Type::INT8),
                (&resolved.map(|policy| i64::from(policy.max_attempts)), Type::INT8),
                (&resolved.map(|policy| whole_millis(policy.attempt_timeout)), Type::INT8),
                (&resolved.map(|policy| whole_millis(policy.total_budget)), Type::INT8),
                (&put.json, Type::TEXT),
            ],
        )
        .await?;
    let version =
        u32::try_from(version).map_err(|_| PostgresError::corrupt("policies", format_args!("version {version}")))?;
    let made = PolicyVersion { id: put.id.clone(), version, spec: put.spec.clone(), created_at: put.now };
    Ok(if current_version.is_some() { PutPolicy::Updated(made) } else { PutPolicy::Created(made) })
}

const PIN: &str = "
SELECT FROM redrive.policy_versions
WHERE tenant = $1 AND policy = $2 AND version = $3 AND NOT deleted
FOR KEY SHARE";

/// Locks the version against deletion until the end of the transaction; returns whether it exists.
pub(crate) async fn pin(
    connection: &Connection,
    tenant: &TenantId,
    version: &PolicyRef,
) -> Result<bool, PostgresError> {
    let found = connection
        .query(
            PIN,
            &[
                (&tenant.as_str(), Type::TEXT),
                (&version.id.as_str(), Type::TEXT),
                (&i64::from(version.version), Type::INT8),
            ],
        )
        .await?;
    Ok(!found.is_empty())
}

/// Every call that makes a version or deletes the policy locks this row first.
const LOCK_POLICY: &str = "SELECT FROM redrive.policies WHERE tenant = $1 AND policy = $2 FOR UPDATE";

const LOCK_VERSIONS: &str = "
SELECT version FROM redrive.policy_versions
WHERE tenant = $1 AND policy = $2 AND NOT deleted
ORDER BY version
FOR UPDATE";

const PINNED: &str = "
SELECT coalesce(sum(tasks), 0)::bigint FROM redrive.task_counts
WHERE tenant = $1 AND policy = $2 AND status IN (2, 3)";

/// Marks the versions as deleted. Ended tasks still name their version: the rows are removed after these tasks have
/// been cleaned away.
const MARK: &str = "
UPDATE redrive.policy_versions SET deleted = true WHERE tenant = $1 AND policy = $2 AND version <= $3";

/// Runs inside a transaction.
pub(crate) async fn delete(
    connection: &Connection,
    tenant: &TenantId,
    id: &PolicyId,
    expected: Expected,
) -> Result<DeletePolicy, PostgresError> {
    let (tenant, id) = (tenant.as_str(), id.as_str());
    let key = [(&tenant as _, Type::TEXT), (&id as _, Type::TEXT)];
    connection.query(LOCK_POLICY, &key).await?;
    // From here on no transaction can make or pin a version, and those that did have committed.
    let versions = connection.query(LOCK_VERSIONS, &key).await?;
    let Some(current) = versions.last().map(|row| Cells::of(row).narrow()).transpose()? else {
        return Ok(DeletePolicy::NotFound);
    };
    if !is_as(Some(current), expected) {
        return Ok(DeletePolicy::Conflict(current));
    }
    let pinned = connection.query(PINNED, &key).await?;
    let pinned = pinned.first().map_or(Ok(0), |row| Cells::of(row).unsigned())?;
    if pinned > 0 {
        return Ok(DeletePolicy::Pinned(pinned));
    }
    let [tenant, id] = key;
    connection.query(MARK, &[tenant, id, (&i64::from(current), Type::INT8)]).await?;
    Ok(DeletePolicy::Done)
}

const VERSIONS: &str = "
SELECT policy, version, spec, created_at FROM redrive.policy_versions
WHERE tenant = $1 AND policy = $2 AND NOT deleted
ORDER BY version";

/// The versions that can be read. Fails if the current one cannot, because an older one must not replace it.
pub(crate) async fn versions(
    connection: &Connection,
    aside: &Aside,
    tenant: &TenantId,
    id: &PolicyId,
) -> Result<Vec<PolicyVersion>, PostgresError> {
    let rows = connection.query(VERSIONS, &[(&tenant.as_str(), Type::TEXT), (&id.as_str(), Type::TEXT)]).await?;
    let versions = readable_versions(connection, aside, tenant, &rows).await?;
    match rows.last().map(read) {
        Some(Err(failure)) => Err(PostgresError::corrupt("the current version", failure)),
        _ => Ok(versions),
    }
}

async fn readable_versions(
    connection: &Connection,
    aside: &Aside,
    tenant: &TenantId,
    rows: &[Row],
) -> Result<Vec<PolicyVersion>, PostgresError> {
    let (mut versions, mut damaged) = (Vec::new(), Vec::new());
    for row in rows {
        versions.extend(readable(read(row), &mut damaged, |failure| {
            let mut cells = Cells::of(row);
            Ok(Damaged::policy_version(tenant.as_str(), cells.get()?, cells.get()?, failure))
        })?);
    }
    aside.put_or_warn(connection, &damaged).await;
    Ok(versions)
}

const VERSION: &str = "
SELECT policy, version, spec, created_at FROM redrive.policy_versions
WHERE tenant = $1 AND policy = $2 AND version = $3 AND NOT deleted";

/// This version, if it exists.
pub(crate) async fn read_version(
    connection: &Connection,
    tenant: &str,
    policy: &str,
    version: i64,
) -> Result<Option<PolicyVersion>, PostgresError> {
    let key = [(&tenant as _, Type::TEXT), (&policy as _, Type::TEXT), (&version as _, Type::INT8)];
    connection.query(VERSION, &key).await?.first().map(read).transpose()
}

const LIST: &str = "
SELECT DISTINCT ON (policy) policy, version, spec, created_at FROM redrive.policy_versions
WHERE tenant = $1 AND policy > $2 AND NOT deleted
ORDER BY policy, version DESC
LIMIT $3";

pub(crate) async fn list(
    connection: &Connection,
    aside: &Aside,
    tenant: &TenantId,
    after: Option<&PolicyId>,
    limit: usize,
) -> Result<Vec<PolicyVersion>, PostgresError> {
    let after = after.map_or("", PolicyId::as_str);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows =
        connection.query(LIST, &[(&tenant.as_str(), Type::TEXT), (&after, Type::TEXT), (&limit, Type::INT8)]).await?;
    readable_versions(connection, aside, tenant, &rows).await
}

/// Whether the current version, if there is one, matches the writer's expectation.
fn is_as(current: Option<u32>, expected: Expected) -> bool {
    match expected {
        Expected::Anything => true,
        Expected::Version(version) => current == Some(version),
        Expected::Absent => current.is_none(),
    }
}

/// Reads policy, version, spec and time of creation.
fn read(row: &Row) -> Result<PolicyVersion, PostgresError> {
    let mut cells = Cells::of(row);
    Ok(PolicyVersion {
        id: cells.parsed(|text| PolicyId::try_new(text).ok())?,
        version: cells.narrow()?,
        spec: cells.parsed(|text| serde_json::from_str(text).ok())?,
        created_at: cells.timestamp()?,
    })
}
