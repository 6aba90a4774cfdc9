//! Claims of this process that nobody settles any more: the rescuer is told of each.
//!
//! On an exclusive store nobody but this process holds leases, so this is all that there can be to rescue, and an engine
//! that left nothing behind need not look. Whether there is something does not depend on a clock: a process may have stood
//! still past its leases, a store may have taken its time, a clock may have been set back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::{TaskId, Timestamp};
use redrive_store::{ClaimedTask, Token};

/// The claims that were left behind, each with the end of its lease.
#[derive(Debug, Default)]
pub(crate) struct AbandonedLeases {
    claims: Mutex<BTreeMap<Claim, Timestamp>>,
}

/// One claim of a task.
pub(crate) type Claim = (TaskId, Token);

/// A claim that somebody is working on; dropping it leaves the claim behind, unless it was settled.
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

    /// Whether there is nothing to rescue.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The claims whose lease has run out by `now`: a look into the store that begins after this finds all of them.
    pub(crate) fn ran_out(&self, now: Timestamp) -> Vec<Claim> {
        self.lock().iter().filter(|(_, until)| **until <= now).map(|(claim, _)| *claim).collect()
    }

    /// Forgets claims that such a look has found and rescued, or has not found any more.
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
    /// The claim was settled, by this process or, as the store says, by another.
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
