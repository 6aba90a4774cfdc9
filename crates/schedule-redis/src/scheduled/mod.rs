//! A shared store with the schedule in Redis in front of it.
//!
//! Every call goes to the store, except the one that is frequent and can be answered elsewhere: which tasks are due
//! ([`claim`]). Guards are in the store alone, so losing Redis neither loses nor multiplies a retry budget. New pending tasks are added to the index in the background, after the
//! store has committed them. Redis never makes a call fail or wait for longer than the schedule's timeout. When Redis
//! does not answer, or has lost data, the store answers instead, and the repair loop restores the index.
//!
//! Not here: how the index works ([`Schedule`]), when it is rebuilt ([`index_repair`]).

mod claim;
mod guards;
mod shared;
mod store;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use redrive_store::{Liveness, Store};
use tokio::task::JoinSet;

use crate::index_repair;
use crate::news;
use crate::partitions::InUse;
use crate::schedule::Schedule;
use crate::state::State;
use crate::writer;

/// A shared store with the schedule in Redis in front of it.
pub struct Scheduled {
    state: Arc<State>,
    /// The background loops, which end with this store.
    loops: Mutex<JoinSet<()>>,
    is_closed: AtomicBool,
    liveness: Liveness,
}

/// The store has one owner, so it needs no schedule in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a schedule in Redis needs a store that several processes share")]
pub struct NotShared;

impl Scheduled {
    /// Puts `schedule` in front of `store`. Does not wait for Redis, which may become available later or never. Needs a
    /// runtime.
    pub fn new(store: Arc<dyn Store>, schedule: Schedule) -> Result<Self, NotShared> {
        if store.shared().is_none() {
            return Err(NotShared);
        }
        let state = Arc::new(State::new(store, Arc::new(schedule)));
        let mut loops = JoinSet::new();
        let liveness = Liveness::default();
        loops.spawn(liveness.clone().watch("Redis index repair", index_repair::run(state.clone())));
        loops.spawn(liveness.clone().watch("Redis writer", writer::run(state.clone())));
        loops.spawn(liveness.clone().watch("Redis news", news::keep_saying(state.clone())));
        loops.spawn(liveness.clone().watch("Redis listener", news::keep_listening(state.clone())));
        loops.spawn(liveness.clone().watch("Redis relay", news::keep_relaying(state.clone())));
        Ok(Scheduled { state, loops: Mutex::new(loops), is_closed: AtomicBool::new(false), liveness })
    }

    /// How much of the index is in use.
    pub fn in_use(&self) -> InUse {
        self.state.partitions.in_use()
    }

    fn stop_loops(&self) {
        self.loops.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}
