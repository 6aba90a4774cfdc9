//! The states of guards, and what operators have set.

use std::collections::BTreeMap;
use std::ops::Bound;

use async_trait::async_trait;
use redrive_core::Lane;
use redrive_core::guards::Controls;

use super::MemoryStore;
use crate::{Error, GuardState, GuardStates, LaneControls};

#[async_trait]
impl GuardStates for MemoryStore {
    /// Kept at once: there is no commit to wait for.
    fn keep(&self, states: Vec<GuardState>) {
        let Ok(mut store) = self.open() else { return };
        for GuardState { lane, state } in states {
            match state {
                Some(state) => store.guard_states.insert(lane, state),
                None => store.guard_states.remove(&lane),
            };
        }
    }

    async fn kept(&self, after: Option<Lane>, limit: usize) -> Result<Vec<GuardState>, Error> {
        let store = self.open()?;
        let page = page(&store.guard_states, after, limit);
        Ok(page.map(|(lane, state)| GuardState { lane, state: Some(state) }).collect())
    }
}

#[async_trait]
impl LaneControls for MemoryStore {
    async fn replace(&self, lane: Lane, expected: Controls, new: Controls) -> Result<bool, Error> {
        let mut store = self.open()?;
        if store.controls.get(&lane).cloned().unwrap_or_default() != expected {
            return Ok(false);
        }
        match new.is_empty() {
            true => store.controls.remove(&lane),
            false => store.controls.insert(lane, new),
        };
        Ok(true)
    }

    async fn list(&self, after: Option<Lane>, limit: usize) -> Result<Vec<(Lane, Controls)>, Error> {
        Ok(page(&self.open()?.controls, after, limit).collect())
    }
}

/// The entries after `after`, at most `limit`.
fn page<T: Clone>(
    entries: &BTreeMap<Lane, T>,
    after: Option<Lane>,
    limit: usize,
) -> impl Iterator<Item = (Lane, T)> + '_ {
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    entries.range((from, Bound::Unbounded)).take(limit).map(|(lane, entry)| (lane.clone(), entry.clone()))
}
