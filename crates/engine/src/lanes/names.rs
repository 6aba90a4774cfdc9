//! Numbers for lanes and tenants, so that counters per lane are found by index instead of by name.
//!
//! A lane without work is remembered for a while, to keep the measured latency of its calls. The lanes that were idle
//! for longest are forgotten.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Bound;

use redrive_core::{Dependency, Lane, TenantId};

use crate::schedule::LaneId;
use crate::slots::TenantKey;

/// The most lanes without work that are remembered.
pub(super) const REMEMBERED: usize = 10_000;

/// The numbers of lanes and tenants. The maps are looked up, never iterated: their order is random.
#[derive(Debug, Default)]
pub(super) struct Names {
    ids: HashMap<Lane, LaneId>,
    lanes: Vec<Option<Named>>,
    unused_lanes: Vec<LaneId>,
    tenants: HashMap<TenantId, Tenant>,
    unused_tenants: Vec<TenantKey>,
    /// Lanes without work, the one that has been idle for longest first.
    idle: VecDeque<LaneId>,
    /// How many lanes were looked at to list some.
    #[cfg(test)]
    pub(super) looked_at: std::cell::Cell<usize>,
}

#[derive(Debug)]
struct Named {
    lane: Lane,
    /// Whether the lane is in `Names::idle`.
    is_remembered: bool,
}

#[derive(Debug)]
struct Tenant {
    key: TenantKey,
    /// Those of its lanes. In order, so that they can be listed piece by piece without a look at all of them.
    dependencies: BTreeSet<Dependency>,
}

/// A lane that has just got its number.
pub(super) struct NewLane {
    pub(super) id: LaneId,
    pub(super) tenant: TenantKey,
}

impl Names {
    /// The lane's number, if it has one.
    pub(super) fn find(&self, lane: &Lane) -> Option<LaneId> {
        self.ids.get(lane).copied()
    }

    /// Gives a number to the lane, which has none.
    pub(super) fn add(&mut self, lane: &Lane) -> NewLane {
        let id = self.unused_lanes.pop().unwrap_or(self.lanes.len());
        let named = Some(Named { lane: lane.clone(), is_remembered: false });
        match self.lanes.get_mut(id) {
            Some(unused) => *unused = named,
            None => self.lanes.push(named),
        }
        self.ids.insert(lane.clone(), id);
        let known = self.tenants.len() + self.unused_tenants.len();
        let unused = &mut self.unused_tenants;
        let new = || Tenant { key: unused.pop().unwrap_or(known), dependencies: BTreeSet::new() };
        let tenant = self.tenants.entry(lane.tenant.clone()).or_insert_with(new);
        tenant.dependencies.insert(lane.dependency.clone());
        NewLane { id, tenant: tenant.key }
    }

    /// The dependencies of a tenant whose lanes have a number, those after `after`, in order.
    pub(super) fn dependencies(
        &self,
        tenant: &TenantId,
        after: Option<&Dependency>,
    ) -> impl Iterator<Item = &Dependency> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let tenant = self.tenants.get(tenant);
        let listed = tenant.into_iter().flat_map(move |tenant| tenant.dependencies.range((from, Bound::Unbounded)));
        listed.inspect(|_| {
            #[cfg(test)]
            self.looked_at.set(self.looked_at.get() + 1);
        })
    }

    /// The lane with this number.
    pub(super) fn lane(&self, id: LaneId) -> Option<&Lane> {
        self.lanes.get(id)?.as_ref().map(|named| &named.lane)
    }

    /// Remembers a lane that has become idle. Returns the lane that it replaces, which may have work again.
    pub(super) fn remember(&mut self, id: LaneId) -> Option<LaneId> {
        let named = self.lanes.get_mut(id)?.as_mut()?;
        if std::mem::replace(&mut named.is_remembered, true) {
            return None;
        }
        self.idle.push_back(id);
        let oldest = if self.idle.len() > REMEMBERED { self.idle.pop_front() } else { None }?;
        self.lanes.get_mut(oldest)?.as_mut()?.is_remembered = false;
        Some(oldest)
    }

    /// Forgets a lane that is no longer remembered.
    pub(super) fn forget(&mut self, id: LaneId) {
        let Some(Named { lane, .. }) = self.lanes.get_mut(id).and_then(Option::take) else { return };
        self.ids.remove(&lane);
        self.unused_lanes.push(id);
        if let Some(tenant) = self.tenants.get_mut(&lane.tenant) {
            tenant.dependencies.remove(&lane.dependency);
            if tenant.dependencies.is_empty() {
                self.unused_tenants.push(tenant.key);
                self.tenants.remove(&lane.tenant);
            }
        }
    }

    /// How many lanes have a number.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.ids.len()
    }
}
