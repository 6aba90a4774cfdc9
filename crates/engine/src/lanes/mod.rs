//! Lanes: one tenant's work for one dependency, the unit of queueing, fairness and protection.
//!
//! Three concepts are combined here, behind one lock: the *schedule* (which lane has due work and claims next),
//! *admission* (how much each lane may use now) and the *slots* (what is on the wire). A lane in memory is a few words;
//! its backlog stays in the store. All of it is an index and can be rebuilt from the store at any time.
//!
//! | file | its job |
//! | --- | --- |
//! | `mod` | what the claimer, the submits and the attempts call |
//! | `state` | the lanes under the lock, and the placement of each after a change |
//! | `guards` | budget, breaker, concurrency limit and pause of each lane |
//! | `names` | numbers for lanes and tenants; forgets the lanes that were idle for longest |
//! | `report`, `quantiles` | what operators see of a lane |
//! | `reservation` | what a claimed task holds of its lane's capacity until it is settled |

mod exchange;
mod guards;
mod names;
mod quantiles;
mod report;
mod reservation;
mod state;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::guards::shared::Answer;
use redrive_core::guards::{Controls, Snapshot};
use redrive_core::{Body, Class, Dependency, Lane, Request, Task, TenantId, Timestamp};
use redrive_store::{ClaimRequest, ClaimedTask, Claims, LeaseTerms};
use tokio::sync::Notify;

pub(crate) use exchange::LaneExchange;
pub(crate) use guards::{KeptState, Origin};
pub use quantiles::Latencies;
pub use report::{AttemptCounts, LaneReport, Waiting, WaitingFor};
pub(crate) use reservation::Reservation;
pub(crate) use state::Turns;

use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::events::{Event, Events};
use crate::options::Options;
use crate::slots::Room;
use state::{Now, State};

/// How long due work may wait before new tasks have to queue behind it.
const FRESH: Duration = Duration::from_secs(1);
/// What a claimed task takes in memory beside its headers and its body, approximately.
const TASK_BYTES: usize = 1_024;

/// All lanes with work, and the most recent ones without.
pub(crate) struct Lanes {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    events: Events,
    /// Whether guards changed whose states are to be kept by the store.
    has_changed_guards: AtomicBool,
    /// Notified when a lane may be ready to claim.
    changed: Notify,
    /// Notified when a lane is to exchange with the other processes sooner than was known.
    exchanges_changed: Notify,
}

/// When the claimer has to look again without a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextLook {
    /// A lane is ready to claim.
    Now,
    /// At this wall-clock time, or at this elapsed time, whichever comes first.
    At(Option<Timestamp>, Option<Duration>),
}

impl NextLook {
    fn is_sooner_than(self, other: NextLook) -> bool {
        match (self, other) {
            (_, NextLook::Now) => false,
            (NextLook::Now, NextLook::At(..)) => true,
            (NextLook::At(due, change), NextLook::At(other_due, other_change)) => {
                is_sooner(due, other_due) || is_sooner(change, other_change)
            }
        }
    }
}

fn is_sooner<T: Ord>(one: Option<T>, other: Option<T>) -> bool {
    one.is_some_and(|one| other.is_none_or(|other| one < other))
}

impl Lanes {
    pub(crate) fn new(
        options: &Options,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        events: Events,
        is_shared: bool,
    ) -> Arc<Self> {
        Arc::new(Lanes {
            state: Mutex::new(State::new(options, entropy, is_shared)),
            clock,
            events,
            has_changed_guards: AtomicBool::new(false),
            changed: Notify::new(),
            exchanges_changed: Notify::new(),
        })
    }

    /// Reserves room for a new task that is due now, if its lane has room and no older task waits for it. `is_last`:
    /// the task has no second attempt.
    pub(crate) fn reserve(self: &Arc<Self>, lane: &Lane, request: &Request, is_last: bool) -> Option<Reservation> {
        let bytes = bytes(request);
        self.with(|state, now| {
            let id = state.id(lane);
            let first = state.schedule.due(id, Class::First);
            let overtakes = first.is_some_and(|due| now.wall.since(due) > FRESH);
            // A lane that probes its dependency sends the tasks that have been due for longest.
            let room = match overtakes || state.is_full() || state.is_held_or_probing(id, now) {
                true => None,
                false => state.reserve(id, is_last, now),
            };
            let Some(room) = room else {
                // If the task is not stored after all, the lane has nothing.
                state.place(id, now);
                return None;
            };
            state.slots.keep_bytes(id, bytes);
            Some(Reservation::new(self, id, room, bytes, false))
        })
    }

    /// Notes that a task of this class of the lane is due at `due`. Returns whether that is earlier than what was
    /// known.
    pub(crate) fn note_due(&self, lane: &Lane, class: Class, due: Timestamp) -> bool {
        self.with(|state, now| {
            let id = state.id(lane);
            let is_news = state.schedule.note(id, class, due);
            if is_news {
                state.place(id, now);
            }
            is_news
        })
    }

    /// Discards the due times of every lane, as if this index had been lost; attempts in flight keep their
    /// reservations.
    pub(crate) fn forget_due(&self) {
        self.with(|state, now| {
            state.schedule.forget();
            state.slots.unreserve_all(now.elapsed);
        });
    }

    /// Takes the next lanes that are ready to claim, each with the room that it gets. The room is held until
    /// [`Lanes::claimed`] or [`Lanes::claim_failed`] reports the result of the claim.
    pub(crate) fn take_turns(&self, lease: LeaseTerms) -> Option<(Turns, ClaimRequest)> {
        self.with(|state, now| {
            let turns = state.take_turns(now);
            let request = state.request(&turns, lease, now.wall);
            (!turns.is_empty()).then_some((turns, request))
        })
    }

    /// Ends turns with the store's answer, which came after `took`: every claimed task gets its reservation.
    pub(crate) fn claimed(
        self: &Arc<Self>,
        turns: &Turns,
        claims: Claims,
        took: Duration,
    ) -> Vec<(ClaimedTask, Reservation)> {
        let Claims { claimed, lanes } = claims;
        let mut claimed = claimed.into_iter().peekable();
        let mut reserved = Vec::with_capacity(claimed.len());
        self.with(|state, now| {
            // A claim that found nothing wrote nothing, so it is no measure of a commit.
            if claimed.peek().is_some() {
                state.horizon.record(took, now.elapsed);
            }
            for (at, (room, &id)) in turns.rooms.iter().zip(&turns.lanes).enumerate() {
                // An older program may have stored a task under another class than its attempts imply: the last room of
                // a lane takes the tasks that are left.
                let is_last = turns.lanes.get(at + 1) != Some(&id);
                let is_of = |claimed: &ClaimedTask| {
                    claimed.task.lane == room.lane && (is_last || class_of(claimed) == room.class)
                };
                let tasks: Vec<ClaimedTask> = std::iter::from_fn(|| claimed.next_if(is_of)).collect();
                let used = state.claimed(id, room, tasks.len(), state::left(&lanes, at, room), now);
                for (number, task) in tasks.into_iter().enumerate() {
                    let slots = usize::from(number < used.slots);
                    let bytes = bytes(&task.request);
                    state.slots.keep_bytes(id, bytes);
                    let room_of_one = Room { slots, ahead: 1 - slots };
                    let is_retry = room.class == Class::Retry;
                    reserved.push((task, Reservation::new(self, id, room_of_one, bytes, is_retry)));
                }
            }
            turns.lanes.iter().for_each(|lane| state.place(*lane, now));
            debug_assert!(claimed.peek().is_none(), "a task was claimed of a lane that was not asked for");
        });
        reserved
    }

    /// Ends turns whose claim failed: the lanes have the same due work as before.
    pub(crate) fn claim_failed(&self, turns: &Turns) {
        self.with(|state, now| {
            for (room, &id) in turns.rooms.iter().zip(&turns.lanes) {
                state.claimed(id, room, 0, Some(now.wall), now);
            }
            turns.lanes.iter().for_each(|lane| state.place(*lane, now));
        });
    }

    /// When the claimer has to look again without a notification.
    pub(crate) fn next_look(&self) -> NextLook {
        self.with(|state, _| state.next_look())
    }

    /// Waits until a lane may have become ready to claim since the last call.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The recent latency of calls to this lane's dependency; zero if it is unknown.
    pub(crate) fn estimate(&self, lane: &Lane) -> Duration {
        let elapsed = self.clock.elapsed();
        self.lock().estimate(lane, elapsed)
    }

    /// The states of the guards that changed since the last call, to be kept by the store.
    pub(crate) fn take_changed_guards(&self) -> Vec<KeptState> {
        if !self.has_changed_guards.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        self.with(|state, now| state.take_changed_guards(now))
    }

    /// Restores the guards of a lane from what the store kept.
    pub(crate) fn restore_guards(&self, lane: &Lane, snapshot: Snapshot) {
        self.with(|state, now| {
            let id = state.id(lane);
            state.restore_guards(id, snapshot, now);
        });
    }

    /// Applies what operators have set: for these lanes, and for no other.
    pub(crate) fn set_controls(&self, all: Vec<(Lane, Controls)>) {
        self.with(|state, now| state.set_controls(all.into_iter().collect(), now));
    }

    /// Whether the retry budget of a lane is spent.
    pub(crate) fn is_budget_spent(&self, lane: &Lane) -> bool {
        self.with(|state, now| state.names.find(lane).is_some_and(|id| state.is_budget_spent(id, now)))
    }

    /// What operators have set for a lane.
    pub(crate) fn controls(&self, lane: &Lane) -> Controls {
        self.lock().guards.controls(lane)
    }

    /// How many lanes operators have set something for.
    pub(crate) fn controlled(&self) -> usize {
        self.lock().guards.controlled().count()
    }

    /// The states of a tenant's lanes, by dependency after `after`, at most `limit`.
    pub(crate) fn reports(&self, tenant: &TenantId, after: Option<&Dependency>, limit: usize) -> Vec<LaneReport> {
        self.with(|state, now| state.reports(tenant, after, limit, now))
    }

    /// The state of a lane; `None` if this process knows nothing of it and nothing is set for it.
    pub(crate) fn report(&self, lane: &Lane) -> Option<LaneReport> {
        self.with(|state, now| state.report_of(lane, now))
    }

    /// What a pending task waits for; `None` if it is about to be sent.
    pub(crate) fn waiting_for(&self, task: &Task) -> Option<Waiting> {
        self.with(|state, now| state.task_waits(task, now))
    }

    /// Closes the breaker of a lane and forgets what its guards have counted.
    pub(crate) fn reset_guards(&self, lane: &Lane) {
        self.with(|state, now| {
            let id = state.id(lane);
            state.reset_guards(id, now);
        });
    }

    /// Closes the breaker of a lane.
    pub(crate) fn close_breaker(&self, lane: &Lane) {
        self.with(|state, now| {
            let id = state.id(lane);
            state.close_breaker(id, now);
        });
    }

    /// The lanes that are to exchange with the other processes by now, at most `most`.
    pub(crate) fn take_exchanges(&self, most: usize) -> Vec<LaneExchange> {
        self.with(|state, now| state.take_exchanges(most, now))
    }

    /// Applies the answer to an exchange; `None` if it failed.
    pub(crate) fn end_exchange(&self, of: &LaneExchange, answer: Option<&Answer>, node: &str) {
        self.with(|state, now| state.end_exchange(of, answer, node, now));
    }

    /// Has all lanes exchange that hold tokens, which are returned: this process sends no more retries.
    pub(crate) fn return_tokens(&self) {
        self.with(|state, now| state.return_tokens(now));
    }

    /// Has a lane exchange soon, because another process changed its guards.
    pub(crate) fn look_soon(&self, lane: &Lane) {
        self.with(|state, now| state.look_soon(lane, now));
    }

    /// Whether the breaker of a lane is closed here.
    pub(crate) fn is_breaker_closed(&self, lane: &Lane) -> bool {
        self.with(|state, now| state.names.find(lane).is_none_or(|id| state.is_breaker_closed(id, now)))
    }

    /// The elapsed time at which the next lane is to exchange.
    pub(crate) fn next_exchange(&self) -> Option<Duration> {
        self.lock().guards.next_exchange()
    }

    /// Waits until a lane is to exchange sooner than was known.
    pub(crate) async fn exchanges_changed(&self) {
        self.exchanges_changed.notified().await;
    }

    /// Changes the lanes, and wakes the claimer if it has to look sooner than before.
    fn with<R>(&self, change: impl FnOnce(&mut State, Now) -> R) -> R {
        let now = Now { wall: self.clock.now(), elapsed: self.clock.elapsed() };
        let mut state = self.lock();
        let (before, exchange_before) = (state.next_look(), state.guards.next_exchange());
        state.slots.advance(now.elapsed);
        state.wake_guarded(now);
        let result = change(&mut state, now);
        state.place_served(now);
        let rings = state.next_look().is_sooner_than(before);
        let exchanges_sooner = is_sooner(state.guards.next_exchange(), exchange_before);
        let held_back = std::mem::take(&mut state.held_back);
        let breakers = std::mem::take(&mut state.guards.breakers);
        if state.guards.has_changed() {
            self.has_changed_guards.store(true, Ordering::Release);
        }
        drop(state);
        for (lane, reason) in &held_back {
            self.events.emit(Event::HeldBack(lane, *reason));
        }
        for (lane, change) in &breakers {
            self.events.emit(Event::Breaker(lane, *change));
        }
        if rings {
            self.changed.notify_one();
        }
        if exchanges_sooner {
            self.exchanges_changed.notify_one();
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The class that a claimed task was claimed from: its attempt is already counted.
fn class_of(claimed: &ClaimedTask) -> Class {
    if claimed.task.attempt_in_run() <= 1 { Class::First } else { Class::Retry }
}

/// What a task takes in memory while it is claimed, approximately.
fn bytes(request: &Request) -> usize {
    let body = match &request.body {
        Body::Inline(bytes) => bytes.len(),
        Body::Stored(_) | Body::LeftOut(_) => 0,
    };
    let headers: usize = request.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    TASK_BYTES + headers + body
}
