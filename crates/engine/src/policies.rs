//! Policy versions, cached and resolved.
//!
//! A version never changes, so a cached version stays valid. The current version of a policy can change: by this
//! process, which then drops its cached entry, or by another one, which is noticed within [`CURRENT_FOR`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::policy::{Invalid, Spec};
use redrive_core::task::PolicyRef;
use redrive_core::{Policy, PolicyId, TenantId};
use redrive_store::{ClaimedTask, DeletePolicy, Error, Expected, PolicyVersion, PutPolicy, Store};

use crate::clock::Clock;

/// How long a policy change by another process may go unnoticed.
const CURRENT_FOR: Duration = Duration::from_secs(1);
/// The most policy versions and current policies in the cache.
const REMEMBERED: usize = 10_000;

/// A policy version, complete and ready to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The version that this is, or is based on.
    pub reference: PolicyRef,
    /// Its fields as they were given, a task's overrides included.
    pub spec: Spec,
    /// The rules in their resolved form.
    pub policy: Policy,
}

impl Resolved {
    fn new(version: &PolicyVersion) -> Result<Self, Invalid> {
        let reference = PolicyRef { id: version.id.clone(), version: version.version };
        Ok(Resolved { reference, spec: version.spec.clone(), policy: Policy::resolve(&version.spec)? })
    }

    /// Returns these rules with single fields overridden for one task.
    pub fn with_overrides(&self, overrides: &Spec) -> Result<Resolved, Invalid> {
        let spec = self.spec.overridden_by(overrides);
        let policy = Policy::resolve(&spec)?;
        Ok(Resolved { reference: self.reference.clone(), spec, policy })
    }
}

/// All policies, through a cache.
pub struct Policies {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    /// Counts this process's changes: a value that was read before a change must not be cached after it.
    changes: u64,
    current: BTreeMap<(TenantId, PolicyId), (Arc<Resolved>, Duration)>,
    versions: BTreeMap<(TenantId, PolicyRef), Arc<Resolved>>,
}

impl Policies {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Policies { store, clock, cache: Mutex::default() }
    }

    /// The current version of a policy.
    pub async fn current(&self, tenant: &TenantId, id: &PolicyId) -> Result<Option<Arc<Resolved>>, Error> {
        let key = (tenant.clone(), id.clone());
        if let Some((resolved, read_at)) = self.cache().current.get(&key)
            && (self.store.is_exclusive() || self.clock.elapsed().saturating_sub(*read_at) < CURRENT_FOR)
        {
            return Ok(Some(resolved.clone()));
        }
        let read_at = self.clock.elapsed();
        let changes = self.cache().changes;
        let Some(newest) = self.store.policies().versions(tenant.clone(), id.clone()).await?.pop() else {
            return Ok(None);
        };
        let resolved = Arc::new(resolve_stored(&newest)?);
        let mut cache = self.cache();
        if cache.changes == changes {
            make_room(&mut cache.current);
            cache.current.insert(key, (resolved.clone(), read_at));
        }
        Ok(Some(resolved))
    }

    /// The version that a task pins.
    pub async fn version(&self, tenant: &TenantId, reference: &PolicyRef) -> Result<Arc<Resolved>, Error> {
        let key = (tenant.clone(), reference.clone());
        if let Some(resolved) = self.cache().versions.get(&key) {
            return Ok(resolved.clone());
        }
        let pinned = self.store.policies().version(tenant.clone(), reference.clone()).await?.ok_or_else(|| {
            Error::Corrupt(format!("policy {} version {} is pinned but not kept", reference.id, reference.version))
        })?;
        let resolved = Arc::new(resolve_stored(&pinned)?);
        let mut cache = self.cache();
        make_room(&mut cache.versions);
        cache.versions.insert(key, resolved.clone());
        Ok(resolved)
    }

    /// The rules that a claimed task pins, with its own overrides. [`Error::Corrupt`] if they are damaged.
    pub(crate) async fn of(&self, claimed: &ClaimedTask) -> Result<Arc<Resolved>, Error> {
        let pinned = self.version(&claimed.task.lane.tenant, &claimed.task.policy).await?;
        match &claimed.request.overrides {
            None => Ok(pinned),
            Some(overrides) => pinned
                .with_overrides(overrides)
                .map(Arc::new)
                .map_err(|invalid| Error::Corrupt(format!("its own policy is invalid: {invalid}"))),
        }
    }

    /// Stores a policy; a change creates a new version.
    pub async fn put(
        &self,
        tenant: TenantId,
        id: PolicyId,
        spec: Spec,
        expected: Expected,
    ) -> Result<PutPolicy, Error> {
        let put = self.store.policies().put(tenant.clone(), id.clone(), spec, expected, self.clock.now()).await;
        self.forget_current(tenant, id);
        put
    }

    /// Deletes a policy, unless a task that has not ended pins it.
    pub async fn delete(&self, tenant: TenantId, id: PolicyId, expected: Expected) -> Result<DeletePolicy, Error> {
        let deleted = self.store.policies().delete(tenant.clone(), id.clone(), expected).await;
        self.forget_current(tenant, id);
        deleted
    }

    fn forget_current(&self, tenant: TenantId, id: PolicyId) {
        let mut cache = self.cache();
        cache.changes += 1;
        cache.current.remove(&(tenant, id));
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn resolve_stored(version: &PolicyVersion) -> Result<Resolved, Error> {
    Resolved::new(version)
        .map_err(|invalid| Error::Corrupt(format!("policy {} version {}: {invalid}", version.id, version.version)))
}

/// Empties a full cache: it is quickly refilled from the store.
fn make_room<K: Ord, V>(map: &mut BTreeMap<K, V>) {
    if map.len() >= REMEMBERED {
        map.clear();
    }
}
