//! Lanes: how much room each has, when its next task is due, and whose turn it is.
//!
//! A lane is one tenant's work for one dependency. What it cannot send now stays in the store: memory holds a few words
//! per lane, never the backlog. This is an index over the store and may be lost at any moment; the claimer rebuilds it.
//!
//! Lanes that have due work *and* room stand in a queue and take turns, so that no lane starves another: a turn is at
//! most `Steps::turn` tasks. A lane without room, however much is due in it, is not in the queue and costs nothing.
//!
//! What a dependency bears at once is the lane's number of *slots*: an attempt holds one while it is on the wire. Tasks
//! may be claimed a little ahead of that, because a claim waits for its commit, and the slots would stand empty
//! meanwhile. A lane whose slots are all taken claims nothing ahead: what it cannot send stays in the store.
//!
//! This is the place where guards hold a lane back. Today there is one, a fixed limit on concurrency.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::latency::{ESTIMATE_FOR, Latency};
use redrive_core::{Lane, Timestamp};
use redrive_store::{LaneDue, LaneRoom};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::options::Options;

/// How long due work may wait before new tasks have to queue up behind it.
const FRESH: Duration = Duration::from_secs(1);
/// The most lanes without work that are remembered for what their calls have been taking.
const REMEMBERED: usize = 10_000;

/// All lanes with work, and the latest ones without.
#[derive(Debug)]
pub(crate) struct Lanes {
    state: Mutex<State>,
    /// Rings when a lane may have come to its turn.
    changed: Notify,
    lane_concurrency: usize,
    max_in_flight: usize,
    turn: usize,
    lanes_per_claim: usize,
    ahead: usize,
}

#[derive(Debug, Default)]
struct State {
    lanes: HashMap<Lane, Entry>,
    /// Lanes with room whose next task is not due yet, by when it is.
    waiting: BTreeSet<(Timestamp, Lane)>,
    /// Lanes with room and due work, in turn.
    queue: VecDeque<Lane>,
    /// Lanes without work, the one that has been so for longest first.
    idle: VecDeque<Lane>,
    in_flight: usize,
}

#[derive(Debug)]
struct Entry {
    /// New tasks that were claimed ahead and are not on the wire yet.
    ahead: usize,
    /// Tasks that the claimer took, or that are on the wire.
    active: usize,
    /// What is on the wire at once.
    slots: Arc<Semaphore>,
    next_due: Option<Timestamp>,
    place: Place,
    latency: Latency,
    /// When `latency` last learnt something, in the clock's elapsed time.
    called_at: Duration,
    /// Whether it stands in `State::idle`.
    remembered: bool,
}

/// Where a lane stands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nowhere: no work, or no room.
    #[default]
    Aside,
    /// In `waiting`, under this time.
    Waiting(Timestamp),
    /// In `queue`.
    Queued,
    /// A claim for it is under way; its `next_due` is what was noted since.
    Claiming,
}

/// Room for one attempt in a lane; dropping it gives the room back.
#[derive(Debug)]
pub(crate) struct Room {
    lanes: Arc<Lanes>,
    lane: Lane,
    slots: Arc<Semaphore>,
    hold: Hold,
}

/// What a room counts as.
#[derive(Debug)]
enum Hold {
    /// A new task, claimed ahead.
    Ahead,
    /// A task that the claimer took, without a slot yet.
    Claimed,
    /// On the wire.
    Slot { _permit: OwnedSemaphorePermit },
}

impl Lanes {
    pub(crate) fn new(options: &Options) -> Arc<Self> {
        let Options { lane_concurrency, max_in_flight, ref steps, .. } = *options;
        Arc::new(Lanes {
            state: Mutex::default(),
            changed: Notify::new(),
            lane_concurrency,
            max_in_flight,
            turn: steps.turn,
            lanes_per_claim: steps.lanes_per_claim,
            ahead: steps.ahead.max(lane_concurrency),
        })
    }

    /// Room for a new task that is due now, if the lane has some and nothing older is waiting for it.
    pub(crate) fn reserve(self: &Arc<Self>, lane: &Lane, now: Timestamp) -> Option<Room> {
        let mut state = self.lock();
        if state.in_flight >= self.max_in_flight {
            return None;
        }
        let entry = self.entry(&mut state, lane);
        let jumps_the_queue = entry.next_due.is_some_and(|due| now.since(due) > FRESH);
        if jumps_the_queue || entry.ahead >= self.ahead {
            return None;
        }
        entry.ahead += 1;
        let slots = entry.slots.clone();
        state.in_flight += 1;
        Some(Room { lanes: self.clone(), lane: lane.clone(), slots, hold: Hold::Ahead })
    }

    /// Notes that a task of this lane is due at `due`.
    pub(crate) fn note_due(&self, lane: &Lane, due: Timestamp) {
        let mut state = self.lock();
        let entry = self.entry(&mut state, lane);
        if entry.next_due.is_none_or(|known| due < known) {
            entry.next_due = Some(due);
            if self.place(&mut state, lane) {
                self.changed.notify_one();
            }
        }
    }

    /// Forgets what is due in every lane, as if this index had been lost; attempts under way keep their room.
    pub(crate) fn forget_due(&self) {
        let mut state = self.lock();
        state.waiting.clear();
        state.queue.clear();
        #[expect(
            clippy::disallowed_methods,
            clippy::iter_over_hash_type,
            reason = "every lane alike, in whatever order"
        )]
        for entry in state.lanes.values_mut() {
            entry.next_due = None;
            if entry.place != Place::Claiming {
                entry.place = Place::Aside;
            }
        }
    }

    /// Takes the next lanes whose turn it is, each with the room that it gets; the room is taken until
    /// [`Lanes::claimed`] says how much of it was needed.
    pub(crate) fn take_turns(&self, now: Timestamp) -> Vec<LaneRoom> {
        let mut state = self.lock();
        while let Some((due, _)) = state.waiting.first()
            && *due <= now
            && let Some((_, lane)) = state.waiting.pop_first()
        {
            if let Some(entry) = state.lanes.get_mut(&lane) {
                entry.place = Place::Queued;
            }
            state.queue.push_back(lane);
        }
        let mut turns = Vec::new();
        while turns.len() < self.lanes_per_claim && state.in_flight < self.max_in_flight {
            let Some(lane) = state.queue.pop_front() else { break };
            let free = self.max_in_flight - state.in_flight;
            let Some(entry) = state.lanes.get_mut(&lane) else { continue };
            let room = entry.room(self.lane_concurrency, self.ahead).min(self.turn).min(free);
            if room == 0 {
                // New tasks took what there was; the lane is placed again when one of them gives it back.
                entry.place = Place::Aside;
                continue;
            }
            entry.active += room;
            entry.place = Place::Claiming;
            entry.next_due = None;
            state.in_flight += room;
            turns.push(LaneRoom { lane, room });
        }
        turns
    }

    /// Ends a turn: `needed` of the room that was taken holds attempts now, the rest is given back, and `next_due` is
    /// what the store says is left.
    pub(crate) fn claimed(self: &Arc<Self>, turn: &LaneRoom, needed: usize, left: &LaneDue) -> Vec<Room> {
        let mut state = self.lock();
        let unused = turn.room.saturating_sub(needed);
        state.in_flight = state.in_flight.saturating_sub(unused);
        let entry = self.entry(&mut state, &turn.lane);
        let slots = entry.slots.clone();
        entry.active = entry.active.saturating_sub(unused);
        entry.place = Place::Aside;
        // What was noted during the claim may be in the store's answer or not: the earlier of both is safe.
        entry.next_due = [entry.next_due, left.next_due].into_iter().flatten().min();
        self.place(&mut state, &turn.lane);
        let room = || Room { lanes: self.clone(), lane: turn.lane.clone(), slots: slots.clone(), hold: Hold::Claimed };
        std::iter::repeat_with(room).take(needed.min(turn.room)).collect()
    }

    /// When the claimer has to look again, if nothing rings before: at once if a lane is queued and there is room.
    pub(crate) fn next_turn(&self) -> Option<Timestamp> {
        let state = self.lock();
        if state.in_flight >= self.max_in_flight {
            return None;
        }
        if !state.queue.is_empty() {
            return Some(Timestamp::default());
        }
        state.waiting.first().map(|(due, _)| *due)
    }

    /// Ends when a lane may have come to its turn since the last call.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What a call of this lane's dependency has been taking lately. After [`ESTIMATE_FOR`] without a call nothing is
    /// known: else one slow spell could turn away every later task with a short budget, and nobody would find out that
    /// the dependency has recovered.
    pub(crate) fn estimate(&self, lane: &Lane, elapsed: Duration) -> Duration {
        self.lock().lanes.get(lane).map_or(Duration::ZERO, |entry| {
            let age = elapsed.saturating_sub(entry.called_at);
            if age > ESTIMATE_FOR { Duration::ZERO } else { entry.latency.estimate() }
        })
    }

    /// Notes what a call took.
    pub(crate) fn record_latency(&self, lane: &Lane, took: Duration, elapsed: Duration) {
        if let Some(entry) = self.lock().lanes.get_mut(lane) {
            if elapsed.saturating_sub(entry.called_at) > ESTIMATE_FOR {
                entry.latency = Latency::default();
            }
            entry.latency.record(took);
            entry.called_at = elapsed;
        }
    }

    /// Puts a lane where it belongs; says whether the claimer has to look.
    fn place(&self, state: &mut State, lane: &Lane) -> bool {
        let Some(entry) = state.lanes.get_mut(lane) else { return false };
        let has_room = entry.room(self.lane_concurrency, self.ahead) > 0;
        match (entry.place, entry.next_due) {
            (Place::Claiming | Place::Queued, _) => false,
            (Place::Waiting(under), Some(due)) if has_room && under == due => false,
            (place, due) => {
                if let Place::Waiting(under) = place {
                    entry.place = Place::Aside;
                    state.waiting.remove(&(under, lane.clone()));
                }
                match due {
                    Some(due) if has_room => {
                        entry.place = Place::Waiting(due);
                        let is_first = state.waiting.first().is_none_or(|(first, _)| due < *first);
                        state.waiting.insert((due, lane.clone()));
                        is_first
                    }
                    Some(_) => false,
                    None => {
                        self.remember(state, lane);
                        false
                    }
                }
            }
        }
    }

    /// A lane without work is remembered for a while, for what its calls have been taking; the oldest are forgotten.
    fn remember(&self, state: &mut State, lane: &Lane) {
        let Some(entry) = state.lanes.get_mut(lane) else { return };
        if entry.is_busy() || entry.remembered {
            return;
        }
        entry.remembered = true;
        state.idle.push_back(lane.clone());
        if state.idle.len() > REMEMBERED
            && let Some(oldest) = state.idle.pop_front()
            && let Some(entry) = state.lanes.get_mut(&oldest)
        {
            entry.remembered = false;
            if !entry.is_busy() && entry.next_due.is_none() && entry.place == Place::Aside {
                state.lanes.remove(&oldest);
            }
        }
    }

    fn entry<'a>(&self, state: &'a mut State, lane: &Lane) -> &'a mut Entry {
        state.lanes.entry(lane.clone()).or_insert_with(|| Entry::new(self.lane_concurrency))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn new(lane_concurrency: usize) -> Self {
        Entry {
            ahead: 0,
            active: 0,
            slots: Arc::new(Semaphore::new(lane_concurrency.min(Semaphore::MAX_PERMITS))),
            next_due: None,
            place: Place::Aside,
            latency: Latency::default(),
            called_at: Duration::ZERO,
            remembered: false,
        }
    }

    /// How many tasks the claimer may take now.
    fn room(&self, lane_concurrency: usize, ahead: usize) -> usize {
        let ahead = if self.slots.available_permits() > 0 { ahead } else { 0 };
        (lane_concurrency + ahead).saturating_sub(self.active)
    }

    fn is_busy(&self) -> bool {
        self.ahead + self.active > 0
    }
}

impl Room {
    /// Whether the attempt may go on the wire.
    pub(crate) fn has_slot(&self) -> bool {
        matches!(self.hold, Hold::Slot { .. })
    }

    /// Takes a slot if one is free and nobody waits for it.
    pub(crate) fn try_slot(&mut self) -> bool {
        let permit = self.slots.clone().try_acquire_owned();
        permit.map(|permit| self.take(permit)).is_ok()
    }

    /// Waits for a slot; who came first goes first.
    pub(crate) async fn slot(&mut self) {
        // An error would mean that somebody closed the lane's slots, which nobody does.
        if let Ok(permit) = self.slots.clone().acquire_owned().await {
            self.take(permit);
        }
    }

    fn take(&mut self, permit: OwnedSemaphorePermit) {
        if matches!(self.hold, Hold::Ahead)
            && let Some(entry) = self.lanes.lock().lanes.get_mut(&self.lane)
        {
            entry.ahead = entry.ahead.saturating_sub(1);
            entry.active += 1;
        }
        self.hold = Hold::Slot { _permit: permit };
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut state = self.lanes.lock();
        let was_full = state.in_flight >= self.lanes.max_in_flight;
        state.in_flight = state.in_flight.saturating_sub(1);
        if let Some(entry) = state.lanes.get_mut(&self.lane) {
            let held = if matches!(self.hold, Hold::Ahead) { &mut entry.ahead } else { &mut entry.active };
            *held = held.saturating_sub(1);
        }
        // Free before the lane is looked at: a free slot is what it may wait for.
        self.hold = Hold::Claimed;
        let ring = self.lanes.place(&mut state, &self.lane);
        drop(state);
        if ring || was_full {
            self.lanes.changed.notify_one();
        }
    }
}
