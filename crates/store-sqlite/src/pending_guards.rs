//! The states of guards that wait for the next commit.
//!
//! They cause no commit of their own. A transaction that changes something takes all of them; if it is rolled back, they
//! wait again, unless a later state of the same lane has come.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::Lane;
use redrive_core::guards::Snapshot;
use redrive_store::GuardState;

/// States by lane; `None` removes the state that is kept.
type States = BTreeMap<Lane, Option<Snapshot>>;

/// The states that wait, shared by the store and its writer.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingGuards {
    waiting: Arc<Mutex<States>>,
}

impl PendingGuards {
    /// Adds states, which replace earlier ones of the same lanes.
    pub(crate) fn add(&self, states: Vec<GuardState>) {
        self.lock().extend(states.into_iter().map(|state| (state.lane, state.state)));
    }

    /// Takes all states, for a transaction.
    pub(crate) fn take(&self) -> States {
        std::mem::take(&mut self.lock())
    }

    /// Returns the states of a transaction that was rolled back.
    pub(crate) fn give_back(&self, states: States) {
        let mut waiting = self.lock();
        for (lane, state) in states {
            waiting.entry(lane).or_insert(state);
        }
    }

    fn lock(&self) -> MutexGuard<'_, States> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::{Dependency, TenantId};

    use super::*;

    #[test]
    fn a_state_that_was_rolled_back_does_not_replace_a_later_one() {
        let lane = |name| Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new(name).unwrap() };
        let state = |name, state| GuardState { lane: lane(name), state };
        let pending = PendingGuards::default();
        pending.add(vec![state("a", Some(Snapshot::default())), state("b", Some(Snapshot::default()))]);
        let taken = pending.take();
        assert!(pending.take().is_empty());
        pending.add(vec![state("a", None)]);
        pending.give_back(taken);
        let expected = [(lane("a"), None), (lane("b"), Some(Snapshot::default()))];
        assert_eq!(pending.take().into_iter().collect::<Vec<_>>(), expected);
    }
}
