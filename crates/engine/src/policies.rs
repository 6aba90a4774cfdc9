//! Policy versions, cached and resolved.
//!
//! A version never changes, so a cached version stays valid. The current version of a policy can change: by this
//! process, which then drops its cached entry, or by another one, which is noticed within [`CURRENT_FOR`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use redrive_core::policy::{self, Context, Invalid, Spec};
use redrive_core::task::PolicyRef;
use redrive_core::{Policy, PolicyId, Request, RetrySpan, Task, TenantId};
use redrive_store::{ClaimedTask, DeletePolicy, Error, Expected, PolicyVersion, PutPolicy, Store};

use crate::clock::Clock;

/// How long a policy change by another process may go unnoticed.
const CURRENT_FOR: Duration = Duration::from_secs(1);
/// The most policy versions and current policies in the cache.
const REMEMBERED: usize = 10_000;

/// A policy version, complete and ready to run.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The version that this is, or is based on.
    pub reference: PolicyRef,
    /// Its fields as they were given, a task's overrides included.
    pub spec: Spec,
    /// The rules in their resolved form.
    pub policy: Policy,
    /// Whether the version is a built-in policy as it is, overrides aside.
    pub is_built_in: bool,
    /// Computed when it is first asked for.
    retry_span: OnceLock<RetrySpan>,
}

impl Resolved {
    fn new(version: &PolicyVersion) -> Result<Self, Invalid> {
        let reference = PolicyRef { id: version.id.clone(), version: version.version };
        let policy = Policy::resolve(&version.spec)?;
        let is_built_in = version.is_built_in();
        Ok(Resolved { reference, spec: version.spec.clone(), policy, is_built_in, retry_span: OnceLock::new() })
    }

    /// Returns these rules with single fields overridden for one task.
    pub fn with_overrides(&self, overrides: &Spec) -> Result<Resolved, Invalid> {
        let spec = self.spec.overridden_by(overrides);
        let policy = Policy::resolve(&spec)?;
        let (reference, is_built_in) = (self.reference.clone(), self.is_built_in);
        Ok(Resolved { reference, spec, policy, is_built_in, retry_span: OnceLock::new() })
    }

    /// How long its retries go on.
    pub fn retry_span(&self) -> RetrySpan {
        *self.retry_span.get_or_init(|| RetrySpan::of(&self.policy))
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

    /// The current version of a policy. A built-in policy that is not stored is stored now, so that the task that asks for it
    /// can pin it.
    pub async fn current(&self, tenant: &TenantId, id: &PolicyId) -> Result<Option<Arc<Resolved>>, Error> {
        let key = (tenant.clone(), id.clone());
        if let Some((resolved, read_at)) = self.cache().current.get(&key)
            && (self.store.is_exclusive() || self.clock.elapsed().saturating_sub(*read_at) < CURRENT_FOR)
        {
            return Ok(Some(resolved.clone()));
        }
        let read_at = self.clock.elapsed();
        let changes = self.cache().changes;
        let stored = self.store.policies().versions(tenant.clone(), id.clone()).await?.pop();
        let newest = match stored {
            Some(newest) => newest,
            None => match self.store_built_in(tenant, id).await? {
                Some(newest) => newest,
                None => return Ok(None),
            },
        };
        let resolved = Arc::new(resolve_stored(&newest)?);
        let mut cache = self.cache();
        if cache.changes == changes {
            make_room(&mut cache.current);
            cache.current.insert(key, (resolved.clone(), read_at));
        }
        Ok(Some(resolved))
    }

    /// Stores every built-in policy that is not stored. A policy that has one of their names stays as it is.
    pub async fn store_built_ins(&self, tenant: &TenantId) -> Result<(), Error> {
        for context in Context::ALL {
            let id = PolicyId::try_new(context.as_str()).map_err(|invalid| Error::Corrupt(invalid.to_string()))?;
            self.store_built_in(tenant, &id).await?;
        }
        Ok(())
    }

    /// Stores the built-in policy with this name, if there is one, and returns the version that is then current.
    async fn store_built_in(&self, tenant: &TenantId, id: &PolicyId) -> Result<Option<PolicyVersion>, Error> {
        let Some(spec) = policy::built_in(id.as_str()) else { return Ok(None) };
        let put = self.put(tenant.clone(), id.clone(), spec, Expected::Absent).await?;
        match put {
            PutPolicy::Created(version) | PutPolicy::Updated(version) | PutPolicy::Unchanged(version) => {
                Ok(Some(version))
            }
            // There is one already, or another process was faster.
            PutPolicy::Conflict(_) => Ok(self.store.policies().versions(tenant.clone(), id.clone()).await?.pop()),
        }
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
        self.of_task(&claimed.task, &claimed.request).await
    }

    /// The rules that a task pins, with its own overrides. [`Error::Corrupt`] if they are damaged or no longer kept.
    pub async fn of_task(&self, task: &Task, request: &Request) -> Result<Arc<Resolved>, Error> {
        let pinned = self.version(&task.lane.tenant, &task.policy).await?;
        match &request.overrides {
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
