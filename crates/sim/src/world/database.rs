//! The simulated store that all nodes share, and its faults.
//!
//! A call travels to the store, takes effect there at one moment, atomically and durably, and its answer travels back.
//! So there are three ways to fail: the call did not arrive (no effect), the store refused it (no effect), or the
//! answer was lost (it took effect, and the caller does not know). A store that loses power loses the calls that have
//! not taken effect and the answers in transit. Commits are synced: commits that only seem durable are tested by
//! `disk`, with a real file.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redrive_core::{TaskId, Timestamp};
use redrive_store::{Store, Token};

use super::observer::Name;
use super::{World, lock, streams};
use crate::model::Whose;
use crate::plan::{Fault, Trouble};
use crate::random::Random;

/// The simulated store.
pub(super) struct Database {
    inner: Arc<dyn Store>,
    is_exclusive: bool,
    state: Mutex<State>,
}

struct State {
    random: Random,
    troubles: Vec<Active>,
    /// Incremented with every power loss: calls and answers in transit are lost.
    powers_lost: u64,
    /// The leases that the previous process left behind (exclusive store only).
    left_behind: BTreeSet<(TaskId, Token)>,
}

/// A fault that is active.
struct Active {
    fault: usize,
    node: Option<usize>,
    trouble: Trouble,
    chance: f64,
    random: Random,
}

/// What will happen to a call.
pub(super) struct Fate {
    pub(super) there: Duration,
    pub(super) back: Duration,
    pub(super) fails: bool,
    pub(super) loses_answer: bool,
    /// The number of power losses when the call was sent: a call or answer that spans one is lost.
    pub(super) powers_lost: u64,
}

/// A call that takes longer than this is late.
const LATE: Duration = Duration::from_millis(100);

impl Fate {
    /// How long the call takes, if it fails, is late, or loses its answer.
    pub(super) fn trouble(&self) -> Option<Duration> {
        let takes = self.there + self.back;
        (self.fails || self.loses_answer || takes > LATE).then_some(takes)
    }
}

impl Database {
    pub(super) fn new(inner: Arc<dyn Store>, random: Random, is_exclusive: bool) -> Self {
        let state = State { random, troubles: Vec::new(), powers_lost: 0, left_behind: BTreeSet::new() };
        Database { inner, is_exclusive, state: Mutex::new(state) }
    }

    /// A process opens the store. On an exclusive store, all leases from before have expired by definition.
    pub(super) async fn open(&self, world: &World, whose: Whose) {
        if !self.is_exclusive {
            return;
        }
        let Ok(left) = self.inner.upkeep().expired_leases(Timestamp::MAX, usize::MAX).await else { return };
        lock(&self.state).left_behind = left.iter().map(|claimed| (claimed.task.id, claimed.lease.token)).collect();
        let count = left.len();
        world
            .observer()
            .note(world.now(), (22, whose, count), None, || format!("{} finds {count} leases", Name(whose)));
    }

    pub(super) fn begin(&self, seed: u64, fault: &Fault, node: Option<usize>, trouble: Trouble, chance: f64) {
        let mut state = lock(&self.state);
        if trouble == Trouble::PowerLoss {
            state.powers_lost += 1;
        }
        let random = Random::stream(seed, streams::FAULTS + fault.number as u64);
        state.troubles.push(Active { fault: fault.number, node, trouble, chance, random });
    }

    pub(super) fn end(&self, fault: usize) {
        lock(&self.state).troubles.retain(|active| active.fault != fault);
    }

    /// Ends all faults of the store.
    pub(super) fn be_well(&self) {
        lock(&self.state).troubles.clear();
    }

    /// Draws what will happen to a call.
    pub(super) fn fate(&self, world: &World, whose: Whose) -> Fate {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let mut way = || state.random.duration(Duration::from_micros(20), Duration::from_millis(5));
        let mut fate =
            Fate { there: way(), back: way(), fails: false, loses_answer: false, powers_lost: state.powers_lost };
        let mut observer = world.observer();
        for active in &mut state.troubles {
            if active.node.is_some_and(|node| node != whose.node) || !active.random.chance(active.chance) {
                continue;
            }
            match active.trouble {
                Trouble::Late => {
                    observer.tally.store_late += 1;
                    let longest = 3 * world.shape.engine.lease_margin;
                    let late = match active.random.chance(0.5) {
                        true => active.random.duration(Duration::from_millis(10), longest),
                        // A delay around the end of a lease, before or after it.
                        false => longest.mul_f64(active.random.unit()),
                    };
                    *(if active.random.chance(0.5) { &mut fate.there } else { &mut fate.back }) += late;
                }
                Trouble::Fails | Trouble::PowerLoss => fate.fails = true,
                Trouble::LosesAnswer => fate.loses_answer = true,
            }
        }
        fate
    }

    pub(super) fn powers_lost(&self) -> u64 {
        lock(&self.state).powers_lost
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        self.inner.clone()
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.is_exclusive
    }

    /// The leases that the previous process left behind.
    pub(super) fn left_behind(&self) -> BTreeSet<(TaskId, Token)> {
        lock(&self.state).left_behind.clone()
    }
}
