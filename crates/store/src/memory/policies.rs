//! Policies and their versions.

use std::ops::Bound;

use redrive_core::task::PolicyRef;
use redrive_core::{PolicyId, TenantId, Timestamp, policy};

use super::state::{State, Tenant};
use crate::{DeletePolicy, Expected, PolicyVersion, PutPolicy};

/// A policy, or the record of a deleted one: the number that its next version must exceed.
#[derive(Debug, Default)]
pub(super) struct PolicyEntry {
    /// The versions, oldest first; the last one is current. Empty once the policy is deleted.
    versions: Vec<PolicyVersion>,
    /// The highest version ever, so that a version number is never used twice.
    newest: u32,
    /// The number of tasks that have not ended, whatever version they were accepted with.
    pub(super) pins: u64,
}

impl PolicyEntry {
    pub(super) fn has(&self, version: u32) -> bool {
        self.versions.binary_search_by_key(&version, |kept| kept.version).is_ok()
    }

    fn current(&self) -> Option<&PolicyVersion> {
        self.versions.last()
    }
}

fn is_as_expected(expected: Expected, current: Option<u32>) -> bool {
    match expected {
        Expected::Anything => true,
        Expected::Version(version) => current == Some(version),
        Expected::Absent => current.is_none(),
    }
}

impl State {
    pub(super) fn put_policy(
        &mut self,
        tenant: TenantId,
        id: PolicyId,
        spec: policy::Spec,
        expected: Expected,
        now: Timestamp,
    ) -> PutPolicy {
        let current = self.tenant_policy(&tenant, &id).and_then(PolicyEntry::current);
        let current_version = current.map(|current| current.version);
        if !is_as_expected(expected, current_version) {
            return PutPolicy::Conflict(current_version);
        }
        if let Some(current) = current.filter(|current| current.spec == spec) {
            return PutPolicy::Unchanged(current.clone());
        }
        let entry = self.indexes.tenants.entry(tenant).or_default().policies.entry(id.clone()).or_default();
        entry.newest += 1;
        let version = PolicyVersion { id, version: entry.newest, spec, created_at: now };
        entry.versions.push(version.clone());
        if current_version.is_none() { PutPolicy::Created(version) } else { PutPolicy::Updated(version) }
    }

    pub(super) fn policy_versions(&self, tenant: &TenantId, id: &PolicyId) -> Vec<PolicyVersion> {
        self.tenant_policy(tenant, id).map(|entry| entry.versions.clone()).unwrap_or_default()
    }

    pub(super) fn list_policies(
        &self,
        tenant: &TenantId,
        after: Option<&PolicyId>,
        limit: usize,
    ) -> Vec<PolicyVersion> {
        let Some(Tenant { policies, .. }) = self.indexes.tenants.get(tenant) else { return Vec::new() };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let policies = policies.range::<PolicyId, _>((from, Bound::Unbounded));
        policies.filter_map(|(_, entry)| entry.current()).take(limit).cloned().collect()
    }

    pub(super) fn delete_policy(&mut self, tenant: &TenantId, id: &PolicyId, expected: Expected) -> DeletePolicy {
        let Some(tenant) = self.indexes.tenants.get_mut(tenant) else { return DeletePolicy::NotFound };
        let Some(entry) = tenant.policies.get_mut(id) else { return DeletePolicy::NotFound };
        let Some(current) = entry.current().map(|current| current.version) else { return DeletePolicy::NotFound };
        if !is_as_expected(expected, Some(current)) {
            return DeletePolicy::Conflict(current);
        }
        if entry.pins > 0 {
            return DeletePolicy::Pinned(entry.pins);
        }
        entry.versions.clear();
        DeletePolicy::Done
    }

    /// Whether this version exists: a deleted policy has none.
    pub(super) fn has_policy(&self, tenant: &TenantId, policy: &PolicyRef) -> bool {
        self.tenant_policy(tenant, &policy.id).is_some_and(|entry| entry.has(policy.version))
    }

    fn tenant_policy(&self, tenant: &TenantId, id: &PolicyId) -> Option<&PolicyEntry> {
        self.indexes.tenants.get(tenant)?.policies.get(id)
    }
}
