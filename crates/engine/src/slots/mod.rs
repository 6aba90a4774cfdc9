//! Slots: what is on the wire or about to be, by lane, and which lanes wait for a slot.
//!
//! A slot is held from its reservation (for a claim or a new task) until the attempt has ended. Tasks that were claimed
//! ahead hold none: they wait in their lane's order. A lane that could use a slot and gets none because its pool is
//! used up waits in a queue; free slots are offered to the queue first.
//!
//! | file | its job |
//! | --- | --- |
//! | `mod` | what each lane holds, has claimed and has on the wire |
//! | `lane` | one lane's entry |
//! | `limits` | how many more slots a lane may take, and why: applies the rules of `admission` to these counts |
//! | `offers` | which lane gets a slot that becomes free |
//! | `wait_queue` | the order of the lanes that wait |
//!
//! Not here: what is due (`schedule`).

mod lane;
mod limits;
mod offers;
#[cfg(test)]
mod tests;
mod wait_queue;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::admission::Pool;
use crate::admission::horizon::Horizon;
use crate::admission::pace::{AttemptEnd, SLOW_AFTER};
use crate::admission::quota::{Quota, share};
use crate::admission::start_rate::StartRate;
use crate::schedule::LaneId;
use lane::LaneSlots;
use wait_queue::WaitQueue;

/// A tenant's number while one of its lanes is in memory.
pub(crate) type TenantKey = usize;
/// Identifies an attempt on the wire, or a task that waits. Never used twice.
pub(crate) type Number = u64;

/// The limits of all lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Slots in all.
    pub(crate) slots: usize,
    /// Slots of one lane.
    pub(crate) slots_per_lane: usize,
    /// Bytes of bodies in memory.
    pub(crate) bytes: usize,
    /// Tasks of one lane that are claimed ahead.
    pub(crate) ahead: usize,
}

/// Why a lane gets no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSlot {
    /// The lane has as many slots as it may have, or has earned.
    LaneLimit,
    /// Too few slots are free in the lane's pool.
    Pool,
    /// The tenant's lanes hold their share of the pool.
    Tenant,
    /// The claimed bodies in memory take up their limit.
    Memory,
    /// The lane is slow, and its next start is at this elapsed time, so that its attempts do not all start at one
    /// moment.
    Paced(Duration),
    /// The slow lanes together have started as many attempts as they may for now.
    StartRate,
}

/// How many tasks a lane may claim now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Room {
    /// Tasks that get a slot at once.
    pub(crate) slots: usize,
    /// Tasks ahead of slots that will become free.
    pub(crate) ahead: usize,
}

impl Room {
    pub(crate) fn is_none(self) -> bool {
        self.slots + self.ahead == 0
    }

    /// This room, cut down to so many tasks; those with a slot stay.
    pub(crate) fn at_most(self, tasks: usize) -> Room {
        let slots = self.slots.min(tasks);
        Room { slots, ahead: self.ahead.min(tasks - slots) }
    }

    /// What is left of this room without a part of it.
    pub(crate) fn without(self, part: Room) -> Room {
        Room { slots: self.slots - part.slots, ahead: self.ahead - part.ahead }
    }
}

/// All slots, and the lanes that hold them or wait for them. Times are elapsed time, which never jumps.
#[derive(Debug)]
pub(crate) struct Slots {
    bounds: Bounds,
    lanes: Vec<LaneSlots>,
    /// Slots and bytes that each tenant holds, by pool.
    tenants: Vec<TenantHolds>,
    slots: Quota,
    bytes: Quota,
    queue: WaitQueue,
    /// Slots that rest after a failure, by the time at which they are free again.
    resting: BTreeMap<(Duration, Number), LaneId>,
    /// Lanes that turn slow at this time if their oldest attempt is still on the wire.
    ageing: BTreeSet<(Duration, LaneId)>,
    /// Slow lanes that may start another attempt at this time.
    paced: BTreeSet<(Duration, LaneId)>,
    /// The start rate of slow lanes, and when the lanes that wait for it are offered slots again.
    start_rate: StartRate,
    next_slow_starts: Option<Duration>,
    /// Tasks of all lanes that are claimed, or about to be, without a slot.
    unsent: usize,
    /// The pool whose queue is offered the next free slot first; the pools take turns.
    first_pool: Pool,
    /// Lanes that may have more room than before.
    served: Vec<LaneId>,
    numbers: Number,
}

#[derive(Debug, Clone, Default)]
struct TenantHolds {
    slots: [usize; Pool::ALL.len()],
    bytes: [usize; Pool::ALL.len()],
}

impl Slots {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Slots {
            bounds,
            lanes: Vec::new(),
            tenants: Vec::new(),
            slots: Quota::new(bounds.slots),
            bytes: Quota::new(bounds.bytes),
            queue: WaitQueue::default(),
            resting: BTreeMap::new(),
            ageing: BTreeSet::new(),
            paced: BTreeSet::new(),
            start_rate: StartRate::new(bounds.slots / 2),
            next_slow_starts: None,
            unsent: 0,
            first_pool: Pool::Fast,
            served: Vec::new(),
            numbers: 0,
        }
    }

    /// Adds a lane that holds nothing, under this number.
    pub(crate) fn add(&mut self, lane: LaneId, tenant: TenantKey) {
        let fresh = LaneSlots::new(tenant);
        if self.tenants.len() <= tenant {
            self.tenants.resize_with(tenant + 1, TenantHolds::default);
        }
        match self.lanes.get_mut(lane) {
            Some(entry) => *entry = fresh,
            None => self.lanes.push(fresh),
        }
        debug_assert!(lane < self.lanes.len(), "lanes are numbered without gaps");
    }

    /// How many tasks the lane may claim now. The `NoSlot` is the reason why none may get a slot; some may still be
    /// claimed ahead.
    pub(crate) fn room(&mut self, lane: LaneId, horizon: &Horizon, now: Duration) -> (Room, Option<NoSlot>) {
        self.classify(lane, now);
        let (slots, held) = match self.more(lane, now) {
            Ok(slots) => (slots, None),
            Err(held) => (0, Some(held)),
        };
        let entry = &self.lanes[lane];
        let slots = slots + entry.reserved;
        // Slots that are or will be on the wire: resting slots send nothing. A lane that lacks memory claims nothing.
        let in_memory = self.bytes_left(lane) / entry.task_bytes;
        let most = if held == Some(NoSlot::Memory) { 0 } else { self.bounds.ahead };
        let ahead = match entry.pool {
            _ if !entry.may_claim_ahead => 0,
            Pool::Fast => horizon.ahead(entry.held + slots - entry.reserved, entry.pace.slot_time(now), most),
            Pool::Unknown | Pool::Slow => 0,
        };
        // Tasks that are claimed and unsent will take slots, or use up what may be claimed ahead of them.
        let all = (slots + ahead).min(in_memory.max(slots)).saturating_sub(entry.unsent);
        let slots = slots.min(all);
        // Unsent tasks are limited by the same share as slots: otherwise a few lanes that stall would hold all of them.
        let most = share(entry.unsent, self.bounds.slots.saturating_sub(self.unsent), 1);
        (Room { slots, ahead: (all - slots).min(most) }, held)
    }

    /// Room for one new task, if the lane has any. The task gets a slot at once if it can be claimed only with one, or
    /// if the lane's slots are not known to turn over quickly. Otherwise it takes a slot when its commit is done: a
    /// slot that is held during a commit sends nothing.
    pub(crate) fn room_for_one(
        &mut self,
        lane: LaneId,
        is_last: bool,
        horizon: &Horizon,
        now: Duration,
    ) -> Option<Room> {
        let (room, held) = self.room(lane, horizon, now);
        let needs_slot = is_last || self.lanes[lane].pool != Pool::Fast;
        match needs_slot {
            true if held.is_none() && room.slots > 0 => Some(Room { slots: 1, ahead: 0 }),
            false if !room.is_none() => Some(Room { slots: 0, ahead: 1 }),
            _ => None,
        }
    }

    /// Takes room that [`Slots::room`] returned.
    pub(crate) fn take(&mut self, lane: LaneId, room: Room, now: Duration) {
        let entry = &mut self.lanes[lane];
        let from_reserved = room.slots.min(entry.reserved);
        entry.reserved -= from_reserved;
        self.add_unsent(lane, room.ahead);
        self.hold(lane, room.slots - from_reserved, now);
    }

    /// Gives room back that was taken and not used.
    pub(crate) fn give_back(&mut self, lane: LaneId, room: Room, now: Duration) {
        self.drop_unsent(lane, room.ahead);
        self.not_started(lane, room.slots, now);
        self.release(lane, room.slots, now);
    }

    /// Turns one task with a slot into one that was claimed ahead, if the lane may have such. Returns whether it did.
    pub(crate) fn lend(&mut self, lane: LaneId, now: Duration) -> bool {
        self.classify(lane, now);
        let may_be_ahead = self.lanes[lane].pool == Pool::Fast;
        if may_be_ahead {
            self.add_unsent(lane, 1);
            self.release(lane, 1, now);
        }
        may_be_ahead
    }

    /// Sets the most slots that the lane's guards allow, and whether they allow claims ahead of free slots. Slots that are
    /// reserved for a claim and are not allowed any more are given back.
    pub(crate) fn set_guard_limit(&mut self, lane: LaneId, limit: usize, may_claim_ahead: bool, now: Duration) {
        let entry = &mut self.lanes[lane];
        entry.guard_limit = limit;
        entry.may_claim_ahead = may_claim_ahead;
        if entry.reserved > 0 && entry.held > limit {
            self.unreserve(lane, now);
        }
    }

    /// Gives back what is reserved for a claim that will not be made.
    pub(crate) fn unreserve(&mut self, lane: LaneId, now: Duration) {
        let reserved = std::mem::take(&mut self.lanes[lane].reserved);
        if reserved > 0 {
            self.not_started(lane, reserved, now);
            self.release(lane, reserved, now);
        }
    }

    /// Gives back what is reserved for claims in any lane.
    pub(crate) fn unreserve_all(&mut self, now: Duration) {
        (0..self.lanes.len()).for_each(|lane| self.unreserve(lane, now));
    }

    /// Forgets the lane, which is idle: it leaves the queue.
    pub(crate) fn remove(&mut self, lane: LaneId) {
        self.queue.leave(lane);
    }

    /// Requests a slot for a task that was claimed ahead: it gets one, or waits behind the lane's other tasks.
    pub(crate) fn want(&mut self, lane: LaneId, now: Duration) -> Result<(), (Number, oneshot::Receiver<()>)> {
        self.classify(lane, now);
        if self.lanes[lane].waiting.is_empty() && self.give_one(lane, now) {
            return Ok(());
        }
        let (granted, grant) = oneshot::channel();
        let number = self.number();
        self.lanes[lane].waiting.push_back((number, granted));
        self.join_queue(lane, now);
        Err((number, grant))
    }

    /// Whether the task that waited under this number has been granted its slot.
    pub(crate) fn is_granted(&self, lane: LaneId, number: Number) -> bool {
        !self.lanes[lane].waiting.iter().any(|(other, _)| *other == number)
    }

    /// Ends the wait of a task under this number. Returns whether it had been granted a slot, which it keeps.
    pub(crate) fn stop_waiting(&mut self, lane: LaneId, number: Number) -> bool {
        let waiting = &mut self.lanes[lane].waiting;
        let before = waiting.len();
        waiting.retain(|(other, _)| *other != number);
        before == waiting.len()
    }

    /// Notes that an attempt begins to use its slot.
    pub(crate) fn begin(&mut self, lane: LaneId, now: Duration) -> Number {
        let number = self.number();
        self.lanes[lane].on_wire.insert(number, now);
        self.watch_age(lane);
        number
    }

    /// Notes that an attempt has ended: its slot is free, or rests.
    pub(crate) fn end(&mut self, lane: LaneId, number: Number, end: AttemptEnd, now: Duration) {
        let Some(began) = self.lanes[lane].on_wire.remove(&number) else { return };
        let took = now.saturating_sub(began);
        let rest = self.lanes[lane].pace.record(took, end, now);
        self.classify(lane, now);
        if self.lanes[lane].pool == Pool::Slow {
            self.start_rate.record(took + rest);
        }
        if rest.is_zero() {
            self.release(lane, 1, now);
        } else {
            self.resting.insert((now + rest, number), lane);
        }
    }

    /// Notes that an attempt was given up without a result that measures the dependency.
    pub(crate) fn abandon(&mut self, lane: LaneId, number: Number, now: Duration) {
        if self.lanes[lane].on_wire.remove(&number).is_some() {
            self.classify(lane, now);
            self.release(lane, 1, now);
        }
    }

    /// Counts the body of a task that is in memory now.
    pub(crate) fn keep_bytes(&mut self, lane: LaneId, bytes: usize) {
        let entry = &mut self.lanes[lane];
        entry.bytes += bytes;
        entry.task_bytes = bytes.max(entry.task_bytes - entry.task_bytes / 8);
        self.tenants[entry.tenant].bytes[entry.pool as usize] += bytes;
        self.bytes.take(entry.pool, bytes);
    }

    /// Stops counting a body that is no longer in memory.
    pub(crate) fn drop_bytes(&mut self, lane: LaneId, bytes: usize, now: Duration) {
        let entry = &mut self.lanes[lane];
        entry.bytes = entry.bytes.saturating_sub(bytes);
        let of_tenant = &mut self.tenants[entry.tenant].bytes[entry.pool as usize];
        *of_tenant = of_tenant.saturating_sub(bytes);
        self.bytes.give_back(entry.pool, bytes);
        if bytes > 0 {
            self.offer(lane, now);
        }
    }

    /// Advances time: slots that rested are free, slow lanes may start their next attempts, and lanes whose oldest
    /// attempt has become too old are slow.
    pub(crate) fn advance(&mut self, now: Duration) {
        while let Some(((until, _), _)) = self.resting.first_key_value()
            && *until <= now
            && let Some((_, lane)) = self.resting.pop_first()
        {
            self.release(lane, 1, now);
        }
        while let Some((until, lane)) = self.paced.first().copied()
            && until <= now
        {
            self.paced.pop_first();
            self.lanes[lane].paced_until = None;
            self.serve(lane, now);
        }
        if self.next_slow_starts.take_if(|at| *at <= now).is_some() {
            self.offer_in_line(true, now);
            self.offer_in_line(false, now);
        }
        while let Some((ages_at, lane)) = self.ageing.first().copied()
            && ages_at <= now
        {
            self.ageing.pop_first();
            self.age(lane, ages_at, now);
        }
    }

    /// When the next resting slot is free, a slow lane may start again, or the next lane turns slow while others wait.
    pub(crate) fn next_change(&self) -> Option<Duration> {
        let rested = self.resting.first_key_value().map(|((until, _), _)| *until);
        let aged = self.ageing.first().map(|(ages_at, _)| *ages_at).filter(|_| !self.queue.is_empty());
        let paced = self.paced.first().map(|(until, _)| *until);
        [rested, aged, paced, self.next_slow_starts].into_iter().flatten().min()
    }

    /// Takes a lane that may have more room than before; each is returned at most once per change.
    pub(crate) fn next_served(&mut self) -> Option<LaneId> {
        self.served.pop()
    }

    /// Whether nothing of this lane is claimed, on the wire or resting.
    pub(crate) fn is_idle(&self, lane: LaneId) -> bool {
        let entry = &self.lanes[lane];
        entry.held == 0 && entry.unsent == 0 && entry.bytes == 0
    }

    /// How many attempts of the lane are on the wire.
    pub(crate) fn on_wire(&self, lane: LaneId) -> usize {
        self.lanes[lane].on_wire.len()
    }

    /// Slots that are held in all.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.slots.held()
    }

    fn add_unsent(&mut self, lane: LaneId, tasks: usize) {
        self.lanes[lane].unsent += tasks;
        self.unsent += tasks;
    }

    fn drop_unsent(&mut self, lane: LaneId, tasks: usize) {
        let unsent = &mut self.lanes[lane].unsent;
        debug_assert!(*unsent >= tasks, "more were sent or given back than were claimed ahead");
        let dropped = tasks.min(*unsent);
        *unsent -= dropped;
        self.unsent -= dropped;
    }

    /// Moves what the lane holds to the pool that it belongs to now.
    fn classify(&mut self, lane: LaneId, now: Duration) {
        let entry = &mut self.lanes[lane];
        let oldest = entry.on_wire.first_key_value().map(|(_, began)| *began);
        let (before, pool) = (entry.pool, entry.pace.pool(oldest, now));
        // The slots of a slow lane were taken from the slow pool. If they were counted as unknown once the lane's
        // measurements expire, the slow lanes could take as many again.
        let has_expired = before == Pool::Slow && pool == Pool::Unknown && entry.held > 0;
        if before == pool || has_expired {
            return;
        }
        entry.pool = pool;
        let (held, bytes) = (entry.held, entry.bytes);
        (entry.most_held, entry.next_start) = (held, now);
        let tenant = &mut self.tenants[entry.tenant];
        for (of_tenant, quota, amount) in
            [(&mut tenant.slots, &mut self.slots, held), (&mut tenant.bytes, &mut self.bytes, bytes)]
        {
            of_tenant[before as usize] = of_tenant[before as usize].saturating_sub(amount);
            of_tenant[pool as usize] += amount;
            quota.give_back(before, amount);
            quota.take(pool, amount);
        }
        self.watch_age(lane);
        // It may still be in the queue of the pool that it left.
        if self.queue.leave(lane) {
            self.serve(lane, now);
            self.join_queue(lane, now);
        }
    }

    fn age(&mut self, lane: LaneId, ages_at: Duration, now: Duration) {
        let Some(entry) = self.lanes.get_mut(lane).filter(|entry| entry.ages_at == Some(ages_at)) else { return };
        entry.ages_at = None;
        let was_fast = entry.pool != Pool::Slow;
        self.classify(lane, now);
        // The oldest attempt now may be younger than the oldest was then.
        self.watch_age(lane);
        if was_fast && self.lanes[lane].pool == Pool::Slow {
            self.offer(lane, now);
        }
    }

    /// Schedules another look at the lane when its oldest attempt would make it slow.
    fn watch_age(&mut self, lane: LaneId) {
        let entry = &mut self.lanes[lane];
        if entry.pool != Pool::Slow
            && entry.ages_at.is_none()
            && let Some((_, began)) = entry.on_wire.first_key_value()
        {
            let ages_at = *began + SLOW_AFTER;
            entry.ages_at = Some(ages_at);
            self.ageing.insert((ages_at, lane));
        }
    }

    fn hold(&mut self, lane: LaneId, slots: usize, now: Duration) {
        let spacing = self.spacing(lane, now);
        let entry = &mut self.lanes[lane];
        entry.held += slots;
        entry.most_held = entry.most_held.max(entry.held);
        let catch_up = spacing * u32::try_from(entry.most_held / 8).unwrap_or(u32::MAX);
        let starts = spacing * u32::try_from(slots).unwrap_or(u32::MAX);
        entry.next_start = entry.next_start.max(now.saturating_sub(catch_up)) + starts;
        if entry.pool == Pool::Slow {
            self.start_rate.take(slots, now);
        }
        self.tenants[entry.tenant].slots[entry.pool as usize] += slots;
        self.slots.take(entry.pool, slots);
    }

    fn number(&mut self) -> Number {
        self.numbers += 1;
        self.numbers
    }
}
