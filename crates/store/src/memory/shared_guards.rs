//! The shared guards in memory, for tests and the simulator: several engines in one process share one value.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use redrive_core::{Lane, Timestamp};

use crate::{Error, GuardKey, SharedGuards, StateChange, VersionedState};

/// States of guards in memory.
#[derive(Debug, Default)]
pub struct MemorySharedGuards {
    all: Mutex<All>,
}

#[derive(Debug, Default)]
struct All {
    states: BTreeMap<GuardKey, Kept>,
    /// The version that was given last. All keys share the numbers, so that none is used again after a deletion.
    last_version: u64,
}

#[derive(Debug, Clone)]
struct Kept {
    state: VersionedState,
    is_closed: bool,
    expires_at: Timestamp,
}

impl MemorySharedGuards {
    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SharedGuards for MemorySharedGuards {
    async fn read(&self, keys: Vec<GuardKey>) -> Result<Vec<Option<VersionedState>>, Error> {
        let states = &self.all().states;
        Ok(keys.iter().map(|key| states.get(key).map(|kept| kept.state.clone())).collect())
    }

    async fn replace(&self, changes: Vec<StateChange>) -> Result<Vec<Option<u64>>, Error> {
        let All { states, last_version } = &mut *self.all();
        let replace = |change: StateChange| {
            let StateChange { key, expected, state, is_closed, is_announced: _, expires_at } = change;
            if states.get(&key).map(|kept| kept.state.version) != expected {
                return None;
            }
            *last_version += 1;
            let state = VersionedState { version: *last_version, state };
            states.insert(key, Kept { state, is_closed, expires_at });
            Some(*last_version)
        };
        Ok(changes.into_iter().map(replace).collect())
    }

    async fn not_closed(&self, after: Option<Lane>, limit: usize) -> Result<Vec<(Lane, VersionedState)>, Error> {
        let states = &self.all().states;
        let from = after.map_or(Bound::Unbounded, |after| Bound::Excluded(GuardKey::Lane(after)));
        let lanes = states.range((from, Bound::Unbounded)).filter(|(_, kept)| !kept.is_closed);
        let lanes = lanes.filter_map(|(key, kept)| match key {
            GuardKey::Lane(lane) => Some((lane.clone(), kept.state.clone())),
            GuardKey::Origin(..) => None,
        });
        Ok(lanes.take(limit).collect())
    }

    async fn clean(&self, now: Timestamp, limit: usize) -> Result<usize, Error> {
        let states = &mut self.all().states;
        let expired = states.iter().filter(|(_, kept)| kept.expires_at < now).map(|(key, _)| key.clone());
        let expired: Vec<GuardKey> = expired.take(limit).collect();
        expired.iter().for_each(|key| drop(states.remove(key)));
        Ok(expired.len())
    }
}
