//! The store's contract, one trait per concept.

use async_trait::async_trait;

use crate::{Blobs, GuardStates, Health, LaneControls, Policies, Reads, Records, SharedStore, Tasks, Upkeep};

/// The storage of tasks, attempts and policies.
///
/// Each concept is a small trait. A wrapper implements those that it changes and returns the others of the wrapped
/// store.
///
/// A call takes many items and is one transaction; `Ok` means that it survives power loss. Answers come in the order of
/// the items. An error means that the call changed nothing, with one exception that each shared store documents: a
/// connection lost during commit.
///
/// Times come from the caller; a store never reads the clock.
///
/// A row that cannot be read, because a newer program wrote it or a person changed it by hand, affects no other row. A
/// call that finds it among others sets it aside, does not count it, and continues without it.
/// [`set_aside`](Health::set_aside) lists it, and a program that can read it takes it back when it opens the store.
/// Only a call for this very row fails, with [`Error::Corrupt`](crate::Error::Corrupt).
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Changes tasks.
    fn tasks(&self) -> &dyn Tasks;

    /// The calls of background loops.
    fn upkeep(&self) -> &dyn Upkeep;

    /// Reads tasks and attempts.
    fn reads(&self) -> &dyn Reads;

    /// Stores policies.
    fn policies(&self) -> &dyn Policies;

    /// Keeps track of the objects that hold bodies.
    fn blobs(&self) -> &dyn Blobs;

    /// Stores idempotency records.
    fn records(&self) -> &dyn Records;

    /// Stores what operators have set for lanes.
    fn controls(&self) -> &dyn LaneControls;

    /// Keeps the states of guards across a restart; `None` if several processes share the store.
    fn guard_states(&self) -> Option<&dyn GuardStates> {
        None
    }

    /// Reports the health of the store.
    fn health(&self) -> &dyn Health;

    /// The calls of a store that several processes share; `None` if one process owns it.
    fn shared(&self) -> Option<&dyn SharedStore> {
        None
    }

    /// Whether no other process can write to this store. If so, a lease that this process does not hold is held by no
    /// process, and no task becomes due that this process has not written or read.
    fn is_exclusive(&self) -> bool;

    /// Finishes the queued calls and closes files. Later calls fail with [`Error::Closed`](crate::Error::Closed).
    async fn close(&self);
}

/// The accessors of a store that implements every concept itself: goes into its `impl Store`.
#[macro_export]
macro_rules! own_concepts {
    () => {
        fn tasks(&self) -> &dyn $crate::Tasks {
            self
        }

        fn upkeep(&self) -> &dyn $crate::Upkeep {
            self
        }

        fn reads(&self) -> &dyn $crate::Reads {
            self
        }

        fn policies(&self) -> &dyn $crate::Policies {
            self
        }

        fn blobs(&self) -> &dyn $crate::Blobs {
            self
        }

        fn records(&self) -> &dyn $crate::Records {
            self
        }

        fn controls(&self) -> &dyn $crate::LaneControls {
            self
        }

        fn health(&self) -> &dyn $crate::Health {
            self
        }
    };
}
