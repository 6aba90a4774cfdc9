//! Claims of this process that no attempt will settle any more: the rescuer has to take them over.
//!
//! On an exclusive store only this process holds leases. So these claims are all that the rescuer can find, and an
//! engine without any does not query the store. The list does not depend on a clock: a process may have been suspended
//! past the end of its leases, a call of the store may have been slow, a clock may have been set back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::{TaskId, Timestamp};
use redrive_store::{ClaimedTask, Token};

/// The abandoned claims, each with the end of its lease.
#[derive(Debug, Default)]
pub(crate) struct AbandonedLeases {
    claims: Mutex<BTreeMap<Claim, Timestamp>>,
}

/// One claim of a task.
pub(crate) type Claim = (TaskId, Token);

/// A claim with an attempt under way. Dropping the guard marks the claim as abandoned, unless it was settled.
#[derive(Debug)]
pub(crate) struct LeaseGuard {
    abandoned_leases: Arc<AbandonedLeases>,
    claim: Claim,
    until: Timestamp,
    is_settled: bool,
}

impl AbandonedLeases {
    /// Holds a claim until it is settled.
    pub(crate) fn hold(self: &Arc<Self>, claimed: &ClaimedTask) -> LeaseGuard {
        let claim = (claimed.task.id, claimed.lease.token);
        LeaseGuard { abandoned_leases: self.clone(), claim, until: claimed.lease.until, is_settled: false }
    }

    /// Whether there is no abandoned claim.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The abandoned claims whose lease has expired by `now`. A query of the store that begins after this call finds
    /// all of them.
    pub(crate) fn ran_out(&self, now: Timestamp) -> Vec<Claim> {
        self.lock().iter().filter(|(_, until)| **until <= now).map(|(claim, _)| *claim).collect()
    }

    /// Forgets claims that such a query has found and rescued, or no longer found.
    pub(crate) fn forget(&self, rescued: &[Claim]) {
        let mut claims = self.lock();
        rescued.iter().for_each(|claim| {
            claims.remove(claim);
        });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Claim, Timestamp>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseGuard {
    /// Marks the claim as settled: by this process or, according to the store, by another one.
    pub(crate) fn settled(mut self) {
        self.is_settled = true;
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        if !self.is_settled {
            self.abandoned_leases.lock().insert(self.claim, self.until);
        }
    }
}
