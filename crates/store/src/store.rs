//! The contract as a whole: one store, reached concept by concept.

use async_trait::async_trait;

use crate::{Blobs, Health, Policies, Reads, Shared, Tasks, Upkeep};

/// Where tasks, attempts and policies are kept.
///
/// Each concept is a small trait; a wrapper implements those that it changes and hands out the others of the store that it
/// wraps.
///
/// Batch first: a call takes many items and is one transaction, and `Ok` means that it survives power loss. Answers
/// come in the order of the items. An error means that nothing of the call happened, with one exception that each
/// shared store documents: a connection lost during commit.
///
/// Times come from the caller; a store never asks what time it is.
///
/// A row that cannot be read, because a newer program wrote it or a person changed it by hand, affects no other row. A call
/// that meets it among others sets it aside, uncounted, and goes on without it; [`set_aside`](Health::set_aside) names it,
/// and a program that can read it takes it back when it opens the store. Only a call for this very row fails, with
/// [`Error::Corrupt`](crate::Error::Corrupt).
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Changes tasks.
    fn tasks(&self) -> &dyn Tasks;

    /// What background loops need.
    fn upkeep(&self) -> &dyn Upkeep;

    /// Reads tasks and attempts.
    fn reads(&self) -> &dyn Reads;

    /// Keeps policies.
    fn policies(&self) -> &dyn Policies;

    /// Keeps track of the objects that hold bodies.
    fn blobs(&self) -> &dyn Blobs;

    /// Tells how the store is.
    fn health(&self) -> &dyn Health;

    /// What processes that share this store have in common; `None` if one process owns it.
    fn shared(&self) -> Option<&dyn Shared> {
        None
    }

    /// Whether no other process can write here: a lease that this process does not hold is held by none, and nothing becomes
    /// due without this process knowing.
    fn is_exclusive(&self) -> bool;

    /// Finishes what is queued and closes files. Calls after this fail with [`Error::Closed`](crate::Error::Closed).
    async fn close(&self);
}
