//! Policies and their versions.

use async_trait::async_trait;
use redrive_core::task::PolicyRef;
use redrive_core::{PolicyId, TenantId, Timestamp, policy};

use crate::Error;

/// Stores policies.
#[async_trait]
pub trait Policies: Send + Sync {
    /// Stores a policy. The spec of the current version changes nothing; another spec becomes the next version.
    async fn put(
        &self,
        tenant: TenantId,
        id: PolicyId,
        spec: policy::Spec,
        expected: Expected,
        now: Timestamp,
    ) -> Result<PutPolicy, Error>;

    /// All kept versions of a policy that can be read, oldest first; empty if there is no such policy. Fails if the
    /// current version cannot be read: an older one must not replace it. A version that is not the current one may be
    /// cleaned away once no task refers to it.
    async fn versions(&self, tenant: TenantId, id: PolicyId) -> Result<Vec<PolicyVersion>, Error>;

    /// One version of a policy, if it is kept.
    async fn version(&self, tenant: TenantId, policy: PolicyRef) -> Result<Option<PolicyVersion>, Error> {
        let versions = self.versions(tenant, policy.id).await?;
        Ok(versions.into_iter().find(|version| version.version == policy.version))
    }

    /// The current version of each policy with an id above `after`, in order, at most `limit`.
    async fn list(&self, tenant: TenantId, after: Option<PolicyId>, limit: usize) -> Result<Vec<PolicyVersion>, Error>;

    /// Removes a policy, unless a task that has not ended pins one of its versions.
    async fn delete(&self, tenant: TenantId, id: PolicyId, expected: Expected) -> Result<DeletePolicy, Error>;
}

/// One version of a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyVersion {
    /// The policy.
    pub id: PolicyId,
    /// The version, from 1.
    pub version: u32,
    /// The spec's fields, as they were given.
    pub spec: policy::Spec,
    /// When this version was made.
    pub created_at: Timestamp,
}

impl PolicyVersion {
    /// Whether it is a built-in policy: it has the name and the fields of one.
    pub fn is_built_in(&self) -> bool {
        policy::built_in(self.id.as_str()).is_some_and(|spec| spec == self.spec)
    }
}

/// The version that a writer expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Any version, or none.
    Anything,
    /// Exactly this current version.
    Version(u32),
    /// No such policy yet.
    Absent,
}

/// The answer to putting a policy.
#[derive(Debug, Clone, PartialEq)]
pub enum PutPolicy {
    /// The policy is new; this is its first version (above all versions of an earlier policy with this name).
    Created(PolicyVersion),
    /// This is a new version.
    Updated(PolicyVersion),
    /// The current version has the same spec.
    Unchanged(PolicyVersion),
    /// The current version is not the expected one; the current version, if there is one.
    Conflict(Option<u32>),
}

/// The answer to deleting a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletePolicy {
    /// The policy is deleted.
    Done,
    /// There is no such policy.
    NotFound,
    /// This many tasks that have not ended pin it.
    Pinned(u64),
    /// The current version is not the expected one; the current version.
    Conflict(u32),
}
