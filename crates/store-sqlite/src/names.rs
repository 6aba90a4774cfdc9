//! Numbers for the names that occur in every row: tenants, lanes, policy versions, operations.
//!
//! Each connection has its own cache, filled from what that connection can read. A committed number never changes its
//! meaning, so an entry needs no invalidation. There are two exceptions, both in the writer: numbers that a batch added
//! may be rolled back, and a deleted policy accepts no new tasks. In these cases the writer clears its cache. Operations
//! are cached by the writer alone, because one that has no record left is removed and may come back with another number.

use std::collections::HashMap;

use redrive_core::idempotency::Operation;
use redrive_core::task::PolicyRef;
use redrive_core::{Dependency, Lane, PolicyId, TenantId};
use rusqlite::{Connection, OptionalExtension};

use crate::sqlite_error::SqliteError;

/// The most names of a kind in one cache. A full cache is cleared, which is simple and rare.
const LIMIT: usize = 65_536;

/// A lane's number and its tenant's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneKey {
    pub(crate) lane: i64,
    pub(crate) tenant: i64,
}

/// The cached names of one connection.
#[derive(Debug, Default)]
pub(crate) struct Names {
    tenant_keys: HashMap<TenantId, i64>,
    lane_keys: HashMap<Lane, LaneKey>,
    lanes: HashMap<i64, Lane>,
    version_keys: HashMap<(i64, PolicyRef), i64>,
    versions: HashMap<i64, PolicyRef>,
    operation_keys: HashMap<(TenantId, Operation), i64>,
    /// Whether the open transaction assigned new numbers.
    grew: bool,
}

impl Names {
    pub(crate) fn forget(&mut self) {
        *self = Names::default();
    }

    pub(crate) fn committed(&mut self) {
        self.grew = false;
    }

    pub(crate) fn rolled_back(&mut self) {
        if self.grew {
            self.forget();
        }
    }

    /// The tenant's number, if it has one.
    pub(crate) fn tenant_key(
        &mut self,
        connection: &Connection,
        tenant: &TenantId,
    ) -> Result<Option<i64>, SqliteError> {
        if let Some(&key) = self.tenant_keys.get(tenant) {
            return Ok(Some(key));
        }
        let mut select = connection.prepare_cached("SELECT id FROM tenants WHERE name = ?1")?;
        let key = select.query_row([tenant.as_str()], |row| row.get(0)).optional()?;
        if let Some(key) = key {
            remember(&mut self.tenant_keys, tenant.clone(), key);
        }
        Ok(key)
    }

    /// The tenant with this number.
    pub(crate) fn tenant(&self, connection: &Connection, key: i64) -> Result<TenantId, SqliteError> {
        let mut select = connection.prepare_cached("SELECT name FROM tenants WHERE id = ?1")?;
        let found: Option<String> = select.query_row([key], |row| row.get(0)).optional()?;
        let place = format_args!("tenant {key}");
        let name = found.ok_or_else(|| SqliteError::corrupt(place, "is missing"))?;
        TenantId::try_new(&name).map_err(|error| SqliteError::corrupt(place, error))
    }

    /// The lane's number, if it has one.
    pub(crate) fn lane_key(&mut self, connection: &Connection, lane: &Lane) -> Result<Option<LaneKey>, SqliteError> {
        if let Some(&key) = self.lane_keys.get(lane) {
            return Ok(Some(key));
        }
        let Some(tenant) = self.tenant_key(connection, &lane.tenant)? else { return Ok(None) };
        let mut select = connection.prepare_cached("SELECT id FROM lanes WHERE tenant = ?1 AND dependency = ?2")?;
        let found = select.query_row((tenant, lane.dependency.as_str()), |row| row.get(0)).optional()?;
        let Some(id) = found else { return Ok(None) };
        let key = LaneKey { lane: id, tenant };
        remember(&mut self.lane_keys, lane.clone(), key);
        Ok(Some(key))
    }

    /// The lane with this number.
    pub(crate) fn lane(&mut self, connection: &Connection, key: i64) -> Result<Lane, SqliteError> {
        if let Some(lane) = self.lanes.get(&key) {
            return Ok(lane.clone());
        }
        let mut select = connection.prepare_cached(
            "SELECT tenants.name, lanes.dependency
             FROM lanes JOIN tenants ON tenants.id = lanes.tenant
             WHERE lanes.id = ?1",
        )?;
        let found: Option<(String, String)> =
            select.query_row([key], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let place = format_args!("lane {key}");
        let (tenant, dependency) = found.ok_or_else(|| SqliteError::corrupt(place, "is missing"))?;
        let lane = Lane {
            tenant: TenantId::try_new(&tenant).map_err(|error| SqliteError::corrupt(place, error))?,
            dependency: Dependency::try_new(&dependency).map_err(|error| SqliteError::corrupt(place, error))?,
        };
        remember(&mut self.lanes, key, lane.clone());
        Ok(lane)
    }

    /// The number of a policy version that accepts new tasks, if it exists.
    pub(crate) fn version_key(
        &mut self,
        connection: &Connection,
        tenant: i64,
        policy: &PolicyRef,
    ) -> Result<Option<i64>, SqliteError> {
        let name = (tenant, policy.clone());
        if let Some(&key) = self.version_keys.get(&name) {
            return Ok(Some(key));
        }
        let mut select = connection.prepare_cached(
            "SELECT id FROM policy_versions WHERE tenant = ?1 AND policy = ?2 AND version = ?3 AND NOT deleted",
        )?;
        let key = select.query_row((tenant, policy.id.as_str(), policy.version), |row| row.get(0)).optional()?;
        if let Some(key) = key {
            remember(&mut self.version_keys, name, key);
        }
        Ok(key)
    }

    /// The policy version with this number, deleted or not.
    pub(crate) fn version(&mut self, connection: &Connection, key: i64) -> Result<PolicyRef, SqliteError> {
        if let Some(version) = self.versions.get(&key) {
            return Ok(version.clone());
        }
        let mut select = connection.prepare_cached("SELECT policy, version FROM policy_versions WHERE id = ?1")?;
        let found: Option<(String, u32)> = select.query_row([key], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let place = format_args!("policy version {key}");
        let (policy, version) = found.ok_or_else(|| SqliteError::corrupt(place, "is missing"))?;
        let id = PolicyId::try_new(&policy).map_err(|error| SqliteError::corrupt(place, error))?;
        let version = PolicyRef { id, version };
        remember(&mut self.versions, key, version.clone());
        Ok(version)
    }

    /// The tenant's number; a new one if it had none. For the writer.
    pub(crate) fn tenant_key_or_new(&mut self, connection: &Connection, tenant: &TenantId) -> Result<i64, SqliteError> {
        if let Some(key) = self.tenant_key(connection, tenant)? {
            return Ok(key);
        }
        self.grew = true;
        connection.prepare_cached("INSERT INTO tenants (name) VALUES (?1)")?.execute([tenant.as_str()])?;
        let key = connection.last_insert_rowid();
        remember(&mut self.tenant_keys, tenant.clone(), key);
        Ok(key)
    }

    /// The lane's number; a new one if it had none. For the writer.
    pub(crate) fn lane_key_or_new(&mut self, connection: &Connection, lane: &Lane) -> Result<LaneKey, SqliteError> {
        if let Some(key) = self.lane_key(connection, lane)? {
            return Ok(key);
        }
        let tenant = self.tenant_key_or_new(connection, &lane.tenant)?;
        self.grew = true;
        let mut insert = connection.prepare_cached("INSERT INTO lanes (tenant, dependency) VALUES (?1, ?2)")?;
        insert.execute((tenant, lane.dependency.as_str()))?;
        let key = LaneKey { lane: connection.last_insert_rowid(), tenant };
        remember(&mut self.lane_keys, lane.clone(), key);
        Ok(key)
    }

    /// The operation's number, if it has one. For the writer.
    pub(crate) fn operation_key(
        &mut self,
        connection: &Connection,
        tenant: &TenantId,
        operation: &Operation,
    ) -> Result<Option<i64>, SqliteError> {
        let name = (tenant.clone(), operation.clone());
        if let Some(&key) = self.operation_keys.get(&name) {
            return Ok(Some(key));
        }
        let Some(tenant) = self.tenant_key(connection, tenant)? else { return Ok(None) };
        let mut select = connection.prepare_cached("SELECT id FROM operations WHERE tenant = ?1 AND name = ?2")?;
        let key = select.query_row((tenant, operation.to_string()), |row| row.get(0)).optional()?;
        if let Some(key) = key {
            remember(&mut self.operation_keys, name, key);
        }
        Ok(key)
    }

    /// The operation's number; a new one if it had none. For the writer.
    pub(crate) fn operation_key_or_new(
        &mut self,
        connection: &Connection,
        tenant: &TenantId,
        operation: &Operation,
    ) -> Result<i64, SqliteError> {
        if let Some(key) = self.operation_key(connection, tenant, operation)? {
            return Ok(key);
        }
        let number = self.tenant_key_or_new(connection, tenant)?;
        self.grew = true;
        let mut insert = connection.prepare_cached("INSERT INTO operations (tenant, name) VALUES (?1, ?2)")?;
        insert.execute((number, operation.to_string()))?;
        let key = connection.last_insert_rowid();
        remember(&mut self.operation_keys, (tenant.clone(), operation.clone()), key);
        Ok(key)
    }

    /// Forgets the numbers of operations, because one of them was removed.
    pub(crate) fn forget_operations(&mut self) {
        self.operation_keys.clear();
    }
}

fn remember<K: std::hash::Hash + Eq, V>(cache: &mut HashMap<K, V>, key: K, value: V) {
    if cache.len() >= LIMIT {
        cache.clear();
    }
    cache.insert(key, value);
}
