//! Limits: how many more slots a lane may take, and the reason for the limit.

use std::time::Duration;

use super::{NoSlot, Slots};
use crate::admission::Pool;
use crate::admission::pace::FIRST_SLOTS;
use crate::admission::quota::{TENANT_WEIGHT, share};
use crate::schedule::LaneId;

impl Slots {
    /// How many tasks may be claimed into slots now; never zero.
    pub(super) fn more(&self, lane: LaneId, now: Duration) -> Result<usize, NoSlot> {
        let entry = &self.lanes[lane];
        let tasks = self.bytes_left(lane) / entry.task_bytes;
        match self.more_slots(lane, now)? {
            _ if self.bytes_left(lane) == 0 => Err(NoSlot::Memory),
            // One task that is larger than the memory that is left may still be claimed; after it the lane waits.
            slots => Ok(slots.min(tasks.max(1))),
        }
    }

    /// How many more bytes of tasks the lane may have in memory.
    pub(super) fn bytes_left(&self, lane: LaneId) -> usize {
        let entry = &self.lanes[lane];
        let free = self.bytes.free(entry.pool, 0);
        let of_tenant = self.tenants[entry.tenant].bytes[entry.pool as usize];
        share(entry.bytes, free, 1).min(share(of_tenant, free, TENANT_WEIGHT))
    }

    /// How many more slots the lane may take now, for tasks that are already in memory; never zero.
    pub(super) fn more_slots(&self, lane: LaneId, now: Duration) -> Result<usize, NoSlot> {
        let entry = &self.lanes[lane];
        let held = &self.tenants[entry.tenant].slots;
        let limit = self.bounds.slots_per_lane.min(entry.pace.earned(now)).min(entry.guard_limit);
        let limit = limit.saturating_sub(entry.held);
        let stuck = held[Pool::Unknown as usize] + held[Pool::Slow as usize];
        let free = self.slots.free(entry.pool, stuck);
        let of_pool = share(entry.held, free, 1);
        let of_tenant = share(held[entry.pool as usize], free, TENANT_WEIGHT);
        // Every fast lane may have its first slots, also from the part that is kept from fast lanes.
        let first = match entry.pool {
            Pool::Fast => FIRST_SLOTS.saturating_sub(entry.held).min(self.slots.unheld()).min(limit),
            Pool::Unknown | Pool::Slow => 0,
        };
        match (limit, of_pool, of_tenant) {
            (0, ..) => Err(NoSlot::LaneLimit),
            _ if first > of_pool.min(of_tenant) => Ok(first),
            (_, 0, _) => Err(NoSlot::Pool),
            (_, _, 0) => Err(NoSlot::Tenant),
            (limit, of_pool, of_tenant) => Ok(limit.min(of_pool).min(of_tenant).min(self.starts(lane, now)?)),
        }
    }

    /// How many attempts the lane may start now: as many as there are slots, unless it is slow.
    pub(super) fn starts(&self, lane: LaneId, now: Duration) -> Result<usize, NoSlot> {
        let entry = &self.lanes[lane];
        let spacing = self.spacing(lane, now);
        let of_lane = match now.checked_sub(entry.next_start) {
            _ if spacing.is_zero() => usize::MAX,
            None => return Err(NoSlot::Paced(entry.next_start)),
            // A lane that was looked at late may catch up a little.
            Some(late) => {
                let due = usize::try_from(late.as_nanos() / spacing.as_nanos().max(1)).unwrap_or(usize::MAX);
                due.min(entry.most_held / 8) + 1
            }
        };
        let of_all = if entry.pool == Pool::Slow { self.start_rate.starts(now) } else { usize::MAX };
        if of_all == 0 { Err(NoSlot::StartRate) } else { Ok(of_lane.min(of_all)) }
    }

    pub(super) fn spacing(&self, lane: LaneId, now: Duration) -> Duration {
        let entry = &self.lanes[lane];
        match entry.pool {
            Pool::Slow => entry.pace.spacing(entry.most_held, now),
            Pool::Fast | Pool::Unknown => Duration::ZERO,
        }
    }

    /// Takes back starts of a slow lane whose slots are given back because the attempts were not made.
    pub(super) fn not_started(&mut self, lane: LaneId, slots: usize, now: Duration) {
        let spacing = self.spacing(lane, now) * u32::try_from(slots).unwrap_or(u32::MAX);
        let entry = &mut self.lanes[lane];
        entry.next_start = entry.next_start.saturating_sub(spacing);
        if entry.pool == Pool::Slow {
            self.start_rate.give_back(slots);
        }
    }

    /// Schedules another look at the lane at this time.
    pub(super) fn look_again(&mut self, lane: LaneId, until: Duration) {
        let entry = &mut self.lanes[lane];
        if let Some(before) = entry.paced_until.replace(until) {
            self.paced.remove(&(before, lane));
        }
        self.paced.insert((until, lane));
    }
}
