//! The lanes under the lock: the schedule, the slots, and the placement of a lane after a change.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::guards;
use redrive_core::latency::ESTIMATE_FOR;
use redrive_core::{Class, Lane, Latency, Timestamp};
use redrive_store::{ClaimRequest, LaneDue, LaneRoom, LeaseTerms};

use super::NextLook;
use super::guards::{GuardRegistry, GuardedLane};
use super::names::Names;
use super::quantiles::Quantiles;
use crate::admission::horizon::Horizon;
use crate::entropy::Entropy;
use crate::events::HoldReason;
use crate::options::{Options, Steps};
use crate::schedule::{LaneId, Schedule};
use crate::slots::{Bounds, NoSlot, Room, Slots};

/// How many tasks a lane requests in its first turn. It requests twice as many after it got all of them, and gradually
/// fewer when it did not. So a claim reserves not many more slots than it needs, and a late claim finds enough of them.
const FIRST_ASK: usize = 8;

/// The current time, on both clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    /// Wall-clock time, which may jump: due times are in it.
    pub(super) wall: Timestamp,
    /// Time since some fixed point: slot times are in it.
    pub(super) elapsed: Duration,
}

pub(super) struct State {
    pub(super) names: Names,
    pub(super) schedule: Schedule,
    pub(super) slots: Slots,
    pub(super) horizon: Horizon,
    pub(super) guards: GuardRegistry,
    pub(super) lanes: Vec<LaneState>,
    pub(super) entropy: Arc<dyn Entropy>,
    /// Tasks whose attempts have ended and that are not settled yet.
    unsettled: usize,
    most_in_flight: usize,
    steps: Steps,
    /// The lanes that were held back since events were last emitted.
    pub(super) held_back: Vec<(Lane, HoldReason)>,
}

#[derive(Debug, Clone)]
pub(super) struct LaneState {
    pub(super) guarded: GuardedLane,
    /// Why the lane got no slot when it was last placed, if it got none.
    held_back: Option<HoldReason>,
    /// The latency of its calls, to decide whether one more fits before a deadline.
    calls: Latency,
    called_at: Duration,
    /// The latency of its calls, to be shown.
    pub(super) latencies: Quantiles,
    /// How many tasks the lane requests in its next turn.
    ask: usize,
    /// The next task may be claimed only into a slot: a claim without one found no task that it may take.
    needs_slot: bool,
}

impl LaneState {
    /// Why the lane got no slot when it was last placed, if it got none.
    pub(super) fn held_back(&self) -> Option<HoldReason> {
        self.held_back
    }
}

/// A claim in progress: what is requested, and by which lanes.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    pub(super) rooms: Vec<LaneRoom>,
    pub(super) lanes: Vec<LaneId>,
}

impl Turns {
    pub(crate) fn is_empty(&self) -> bool {
        self.rooms.is_empty()
    }
}

impl State {
    pub(super) fn new(options: &Options, entropy: Arc<dyn Entropy>, is_shared: bool) -> Self {
        let bounds = Bounds {
            slots: options.max_in_flight,
            slots_per_lane: options.lane_concurrency,
            bytes: options.max_body_bytes,
            ahead: options.steps.ahead,
        };
        State {
            names: Names::default(),
            schedule: Schedule::default(),
            slots: Slots::new(bounds),
            horizon: Horizon::default(),
            guards: GuardRegistry::new(guards_of(options), is_shared),
            lanes: Vec::new(),
            entropy,
            unsettled: 0,
            most_in_flight: options.max_in_flight,
            steps: options.steps.clone(),
            held_back: Vec::new(),
        }
    }

    /// The number of this lane; a new one if it has none.
    pub(super) fn id(&mut self, lane: &Lane) -> LaneId {
        if let Some(id) = self.names.find(lane) {
            return id;
        }
        let new = self.names.add(lane);
        let fresh = LaneState {
            guarded: GuardedLane::default(),
            held_back: None,
            calls: Latency::default(),
            called_at: Duration::ZERO,
            latencies: Quantiles::default(),
            ask: FIRST_ASK,
            needs_slot: false,
        };
        match self.lanes.get_mut(new.id) {
            Some(unused) => *unused = fresh,
            None => self.lanes.push(fresh),
        }
        self.schedule.add(new.id);
        self.slots.add(new.id, new.tenant);
        new.id
    }

    /// Places a lane after a change: waiting by time, queued for its turn, or set aside.
    pub(super) fn place(&mut self, lane: LaneId, now: Now) {
        let retries = self.apply_guards(lane, now);
        self.watch_budget(lane, retries, now);
        let guard = self.guard_hold(lane, now.wall);
        let Some(due) = self.schedule.first_due(lane) else {
            self.note_held(lane, guard);
            self.schedule.set_aside(lane);
            self.slots.unreserve(lane, now.elapsed);
            self.rest(lane, now);
            return;
        };
        // The same limit as in `next_look`, otherwise the claimer would be woken at once, again and again.
        if now.wall < due.before(self.horizon.lead()) {
            self.note_held(lane, guard);
            self.slots.unreserve(lane, now.elapsed);
            self.schedule.wait(lane);
            return;
        }
        let (room, held) = self.room(lane, now);
        self.note_held(lane, guard.or(held.filter(|_| room.is_none()).map(HoldReason::from)));
        match room.is_none() {
            false => self.schedule.queue(lane),
            true => {
                self.schedule.set_aside(lane);
                self.slots.join_queue(lane, now.elapsed);
            }
        }
    }

    /// Notes why a lane with due work gets no slot, once for as long as the reason stays the same.
    fn note_held(&mut self, lane: LaneId, reason: Option<HoldReason>) {
        let before = std::mem::replace(&mut self.lanes[lane].held_back, reason);
        if let (Some(reason), Some(name)) = (reason.filter(|_| before != reason), self.names.lane(lane)) {
            self.held_back.push((name.clone(), reason));
        }
    }

    /// Places every lane that may have more room than before.
    pub(super) fn place_served(&mut self, now: Now) {
        while let Some(lane) = self.slots.next_served() {
            if self.names.lane(lane).is_some() {
                self.place(lane, now);
            }
        }
    }

    /// Takes room for one new task that is due now.
    pub(super) fn reserve(&mut self, lane: LaneId, is_last: bool, now: Now) -> Option<Room> {
        let one = self.slots.room_for_one(lane, is_last, &self.horizon, now.elapsed)?;
        self.slots.take(lane, one, now.elapsed);
        Some(one)
    }

    /// Takes the next lanes that are ready to claim, each with the room that it gets.
    pub(super) fn take_turns(&mut self, now: Now) -> Turns {
        let mut turns = Turns::default();
        let mut without_room = Vec::new();
        let due_by = now.wall.after(self.horizon.window());
        let mut asked = 0;
        while turns.rooms.len() < self.steps.lanes_per_claim && asked < self.steps.claim && !self.is_full() {
            let Some(lane) = self.schedule.next(due_by) else { break };
            let retries = self.apply_guards(lane, now);
            let room = self.ask(lane, now);
            let split = if room.is_none() { Vec::new() } else { self.split(lane, room, retries, due_by, now) };
            if split.is_empty() {
                // New tasks took the room, or a guard closed the lane. Placed below: a lane that is not due yet would be
                // returned here again.
                without_room.push(lane);
                continue;
            }
            for (class, room) in split {
                let Some(name) = self.names.lane(lane).cloned() else { continue };
                self.slots.take(lane, room, now.elapsed);
                if class == Class::Retry {
                    self.reserve_retries(lane, room.slots + room.ahead, now);
                }
                asked += room.slots + room.ahead;
                self.schedule.claiming(lane, class);
                turns.rooms.push(LaneRoom { lane: name, class, slots: room.slots, ahead: room.ahead });
                turns.lanes.push(lane);
            }
        }
        without_room.into_iter().for_each(|lane| self.place(lane, now));
        turns
    }

    pub(super) fn request(&self, turns: &Turns, lease: LeaseTerms, now: Timestamp) -> ClaimRequest {
        let due_by = now.after(self.horizon.window());
        ClaimRequest { rooms: turns.rooms.clone(), most: self.steps.claim, due_by, lease, now }
    }

    /// Ends a turn of one class: `claimed` tasks were claimed, and `next_due` is the due time that the store returned
    /// for the rest. Returns the room of each claimed task; the rest is given back.
    pub(super) fn claimed(
        &mut self,
        lane: LaneId,
        asked: &LaneRoom,
        claimed: usize,
        next_due: Option<Timestamp>,
        now: Now,
    ) -> Room {
        let used = Room { slots: claimed.min(asked.slots), ahead: claimed.saturating_sub(asked.slots) };
        let unused = Room { slots: asked.slots - used.slots, ahead: asked.ahead.saturating_sub(used.ahead) };
        let unasked = Room { slots: 0, ahead: used.ahead.saturating_sub(asked.ahead) };
        self.slots.take(lane, unasked, now.elapsed);
        if asked.class == Class::Retry {
            self.reserve_retries(lane, unasked.ahead, now);
            self.release_retries(lane, unused.slots + unused.ahead);
        }
        let state = &mut self.lanes[lane];
        let wanted = asked.slots + asked.ahead;
        let next = if claimed >= wanted { state.ask * 2 } else { (claimed * 4).max(state.ask - state.ask / 8) };
        state.ask = next.max(FIRST_ASK).min(self.steps.turn);
        let claimable = now.wall.after(self.horizon.window());
        state.needs_slot = claimed == 0 && asked.slots == 0 && next_due.is_some_and(|due| due <= claimable);
        if let Some(due) = next_due {
            // A due time noted during the claim may be in the store's answer or not: the earlier of both is safe.
            self.schedule.note(lane, asked.class, due);
        }
        self.schedule.claimed(lane);
        self.slots.give_back(lane, unused, now.elapsed);
        used
    }

    /// Notes that a task holds neither a slot nor a wait for one any more, and is about to be settled.
    pub(super) fn ended(&mut self) {
        self.unsettled += 1;
    }

    /// Notes that a task is settled, or left to the rescuer.
    pub(super) fn leave(&mut self) {
        self.unsettled = self.unsettled.saturating_sub(1);
    }

    /// Whether nothing may be claimed, because the store cannot keep up with the attempts that have ended.
    pub(super) fn is_full(&self) -> bool {
        self.unsettled >= self.most_in_flight
    }

    pub(super) fn next_look(&self) -> NextLook {
        match () {
            () if self.is_full() => NextLook::At(None, None),
            () if self.schedule.has_ready() => NextLook::Now,
            () => {
                let due = self.schedule.next_time().map(|due| due.before(self.horizon.lead()));
                let changes = [self.slots.next_change(), self.guards.next_wake()];
                NextLook::At(due, changes.into_iter().flatten().min())
            }
        }
    }

    /// The recent latency of calls to this lane's dependency. It expires after [`ESTIMATE_FOR`] without a call.
    /// Otherwise one slow period could reject every later task with a short budget, and no call would be made that
    /// could show that the dependency has recovered.
    pub(super) fn estimate(&self, lane: &Lane, elapsed: Duration) -> Duration {
        self.names.find(lane).map_or(Duration::ZERO, |lane| {
            let LaneState { calls, called_at, .. } = &self.lanes[lane];
            if elapsed.saturating_sub(*called_at) > ESTIMATE_FOR { Duration::ZERO } else { calls.estimate() }
        })
    }

    /// Records the latency of a call.
    pub(super) fn record_call(&mut self, lane: LaneId, took: Duration, elapsed: Duration) {
        let LaneState { calls, called_at, latencies, .. } = &mut self.lanes[lane];
        if elapsed.saturating_sub(*called_at) > ESTIMATE_FOR {
            *calls = Latency::default();
        }
        calls.record(took);
        *called_at = elapsed;
        latencies.record(took, elapsed);
    }

    fn room(&mut self, lane: LaneId, now: Now) -> (Room, Option<NoSlot>) {
        let (mut room, held) = self.slots.room(lane, &self.horizon, now.elapsed);
        if self.lanes[lane].needs_slot && room.slots == 0 {
            room.ahead = 0;
        }
        (room, held)
    }

    /// How many tasks the lane requests in its turn: no more than it may have, and than it is likely to find.
    fn ask(&mut self, lane: LaneId, now: Now) -> Room {
        let (room, _) = self.room(lane, now);
        let slots = room.slots.min(self.lanes[lane].ask);
        Room { slots, ahead: room.ahead.min(self.lanes[lane].ask - slots) }
    }

    /// Splits room between the classes that have due work: in halves, the larger one for the class that was due first.
    /// Retries get no more than `retries`, and what they leave is for first attempts. A lane that probes its dependency
    /// takes what has been due for longest.
    fn split(&self, lane: LaneId, room: Room, retries: u32, due_by: Timestamp, now: Now) -> Vec<(Class, Room)> {
        let retries = usize::try_from(retries).unwrap_or(usize::MAX);
        let due = |class| self.schedule.due(lane, class).filter(|due| *due <= due_by);
        let retry = due(Class::Retry).filter(|_| retries > 0);
        let (first, is_both) = match (due(Class::First), retry) {
            (Some(first), Some(retry)) => (if retry < first { Class::Retry } else { Class::First }, true),
            (Some(_), None) => (Class::First, false),
            (None, Some(_)) => (Class::Retry, false),
            (None, None) => return Vec::new(),
        };
        let parts = match (first, is_both && !self.is_held_or_probing(lane, now)) {
            (Class::First, false) => [(Class::First, room), (Class::Retry, Room::default())],
            (Class::Retry, false) => [(Class::Retry, room.at_most(retries)), (Class::First, Room::default())],
            (first, true) => {
                let half = Room { slots: room.slots / 2, ahead: room.ahead / 2 };
                let of_retries = if first == Class::Retry { room.without(half) } else { half }.at_most(retries);
                let both = [(Class::First, room.without(of_retries)), (Class::Retry, of_retries)];
                if first == Class::First { both } else { [both[1], both[0]] }
            }
        };
        parts.into_iter().filter(|(_, room)| !room.is_none()).collect()
    }

    /// Remembers a lane without work for a while; the oldest are forgotten.
    fn rest(&mut self, lane: LaneId, now: Now) {
        if !self.is_idle(lane) || !self.can_forget_guards(lane, now) {
            return;
        }
        if let Some(oldest) = self.names.remember(lane)
            && self.is_idle(oldest)
            && self.can_forget_guards(oldest, now)
        {
            self.slots.remove(oldest);
            self.forget_guards(oldest);
            self.names.forget(oldest);
        }
    }

    fn is_idle(&self, lane: LaneId) -> bool {
        self.schedule.is_idle(lane) && self.slots.is_idle(lane)
    }
}

/// The due time of the tasks that remain in a turn's lane and class, from the store's answer.
pub(super) fn left(lanes: &[LaneDue], at: usize, room: &LaneRoom) -> Option<Timestamp> {
    let is_of = |left: &&LaneDue| left.lane == room.lane && left.class == room.class;
    let left = lanes.get(at).filter(is_of).or_else(|| lanes.iter().find(is_of));
    left.and_then(|left| left.next_due)
}

/// The settings of the guards: a lane never has more attempts in flight than the engine allows for one.
fn guards_of(options: &Options) -> guards::Settings {
    let most = u32::try_from(options.lane_concurrency).unwrap_or(u32::MAX);
    let mut settings = options.guards;
    settings.concurrency.most = settings.concurrency.most.min(most);
    settings
}
