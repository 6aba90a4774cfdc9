//! The store without a disk: everything is in this process's memory and is lost when it ends.
//!
//! It is for tests, for trying Redrive out, and the baseline that a durable store is measured against. It keeps the
//! contract of [`Store`](crate::Store) except for durability. One lock guards everything, every call completes at once,
//! and every visible order comes from ordered maps, so that a simulation replays exactly.
//!
//! Superseded versions of a policy are kept until the policy is deleted: policies are written by hand, so there are
//! few.

mod announce;
mod backlog;
mod blobs;
mod cancel;
mod claim;
mod clean;
mod contract;
mod guard_states;
mod list;
mod overdue;
mod policies;
mod records;
mod replay;
mod settle;
mod shared_guards;
mod state;
mod submit;
mod suppress;

pub use shared_guards::MemorySharedGuards;

use std::sync::{Mutex, MutexGuard};

use crate::Error;
use state::State;

/// A store in memory; a new one is empty.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        MemoryStore::default()
    }

    fn open(&self) -> Result<MutexGuard<'_, State>, Error> {
        let state = self.state.lock().map_err(|_| Error::Unavailable("an earlier call panicked halfway".to_owned()))?;
        if state.closed { Err(Error::Closed) } else { Ok(state) }
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::Status;

    use super::{MemorySharedGuards, MemoryStore};
    use crate::conformance::interleave::{Actor, orders, run};
    use crate::conformance::samples::{acme, allow, at, keep_and_end, task};
    use crate::conformance::shared_guards::FreshGuards;
    use crate::conformance::{Fresh, workload};
    use crate::{CleanFrom, Store};

    async fn fresh() -> Fresh {
        Fresh::new(MemoryStore::new())
    }

    crate::conformance!(fresh);

    async fn fresh_guards() -> FreshGuards {
        FreshGuards::new(MemorySharedGuards::default())
    }

    crate::shared_guards_conformance!(fresh_guards);

    #[tokio::test]
    async fn many_other_random_lives_end_as_the_model_says() {
        for seed in 2..20 {
            workload::run(&MemoryStore::new(), seed, 500).await;
        }
    }

    #[tokio::test]
    async fn no_order_of_two_collectors_two_uploads_and_a_submit_loses_a_body() {
        use Actor::{Collect, Submit, Upload};
        for actors in [[Upload, Submit, Collect, Collect], [Upload, Upload, Submit, Collect]] {
            for order in orders(&actors) {
                let store = MemoryStore::new();
                allow(&store, acme()).await;
                run(&store, &actors, &order, 1).await;
            }
        }
    }

    #[tokio::test]
    async fn nothing_is_left_of_what_was_cleaned_away() {
        let store = MemoryStore::new();
        keep_and_end(&store, task(1), Status::Succeeded, at(5)).await;
        keep_and_end(&store, task(2), Status::Failed, at(5)).await;
        store.upkeep().clean(at(6), CleanFrom::Start, 10).await.unwrap();
        let state = store.open().unwrap();
        let acme = &state.indexes.tenants[&acme()];
        assert!(state.tasks.is_empty() && acme.ids.is_empty() && acme.keys.is_empty());
        assert!(state.indexes.due.is_empty() && state.indexes.deadlines.is_empty());
        assert!(state.indexes.leases.is_empty() && state.indexes.unannounced.is_empty());
    }

    #[tokio::test]
    async fn the_same_life_leads_to_the_same_store() {
        let (one, other) = (MemoryStore::new(), MemoryStore::new());
        assert_eq!(workload::run(&one, 7, 500).await, workload::run(&other, 7, 500).await);
    }
}
