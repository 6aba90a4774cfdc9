//! How many more slots a lane may take, and why no more.

use std::time::Duration;

use super::{Held, Slots};
use crate::admission::Pool;
use crate::admission::pace::FIRST_SLOTS;
use crate::admission::quota::{TENANT_WEIGHT, share};
use crate::schedule::LaneId;

/// Attempts that take so long are kept from starting at one moment in many lanes.
const LONG: Duration = Duration::from_secs(1);
/// The most that a lane's starts are moved for that.
const WIDEST: Duration = Duration::from_secs(2);

/// A number from 0 to 1 for each lane, far from those of the lanes with the numbers before (multiples of the golden ratio).
fn fraction(lane: LaneId) -> f64 {
    (lane as f64 * 0.618_033_988_749_895).fract()
}

impl Slots {
    /// How many tasks may be claimed into slots now; never zero.
    pub(super) fn more(&self, lane: LaneId, now: Duration) -> Result<usize, Held> {
        let entry = &self.lanes[lane];
        let tasks = self.bytes_left(lane) / entry.task_bytes;
        match self.more_slots(lane, now)? {
            _ if self.bytes_left(lane) == 0 => Err(Held::Memory),
            // One that is larger than what is left may still come; after it the lane waits.
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

    /// How many more slots the lane may take now, for tasks that are in memory already; never zero.
    pub(super) fn more_slots(&self, lane: LaneId, now: Duration) -> Result<usize, Held> {
        let entry = &self.lanes[lane];
        let held = &self.tenants[entry.tenant].slots;
        let limit = self.bounds.slots_per_lane.min(entry.pace.earned(now)).saturating_sub(entry.held);
        let stuck = held[Pool::Unknown as usize] + held[Pool::Slow as usize];
        let free = self.slots.free(entry.pool, stuck);
        let of_pool = share(entry.held, free, 1);
        let of_tenant = share(held[entry.pool as usize], free, TENANT_WEIGHT);
        // Of what is kept from fast lanes, every one of them still has its first slots.
        let first = match entry.pool {
            Pool::Fast => FIRST_SLOTS.saturating_sub(entry.held).min(self.slots.unheld()).min(limit),
            Pool::Unknown | Pool::Slow => 0,
        };
        match (limit, of_pool, of_tenant) {
            (0, ..) => Err(Held::LaneLimit),
            _ if first > of_pool.min(of_tenant) => Ok(first),
            (_, 0, _) => Err(Held::Pool),
            (_, _, 0) => Err(Held::Tenant),
            (limit, of_pool, of_tenant) => Ok(limit.min(of_pool).min(of_tenant).min(self.starts(lane, now)?)),
        }
    }

    /// How many attempts the lane may start now: as many as there are slots, unless it is slow.
    pub(super) fn starts(&self, lane: LaneId, now: Duration) -> Result<usize, Held> {
        let entry = &self.lanes[lane];
        let spacing = self.spacing(lane, now);
        if spacing.is_zero() {
            return Ok(usize::MAX);
        }
        match now.checked_sub(entry.next_start) {
            None => Err(Held::Paced(entry.next_start)),
            // A lane that was looked at late may catch up a little.
            Some(late) => {
                let due = usize::try_from(late.as_nanos() / spacing.as_nanos().max(1)).unwrap_or(usize::MAX);
                Ok(due.min(entry.most_held / 8) + 1)
            }
        }
    }

    pub(super) fn spacing(&self, lane: LaneId, now: Duration) -> Duration {
        let entry = &self.lanes[lane];
        match entry.pool {
            Pool::Slow => entry.pace.spacing(entry.most_held, now),
            Pool::Fast | Pool::Unknown => Duration::ZERO,
        }
    }

    /// Moves the starts of a lane whose attempts take long away from those of other such lanes, once. Lanes that were given
    /// their backlogs at one moment would otherwise end, be settled, be claimed and start again at one moment for ever. Only
    /// an attempt that began when the lane was slow says that: in a burst that this machine is too slow for, all take long.
    pub(super) fn spread(&mut self, lane: LaneId, took: Duration, now: Duration) {
        let entry = &mut self.lanes[lane];
        if entry.pool != Pool::Slow {
            entry.is_spread = false;
        } else if took >= LONG && !entry.is_spread && now.saturating_sub(took) >= entry.changed_at {
            entry.is_spread = true;
            let by = (took / 2).min(WIDEST).mul_f64(fraction(lane));
            // In whole milliseconds: no clock is asked for less.
            let by = Duration::from_millis(u64::try_from(by.as_millis()).unwrap_or(u64::MAX));
            entry.next_start = entry.next_start.max(now + by);
        }
    }

    /// Slots that were taken for attempts of a slow lane are given back, and the attempts were not made.
    pub(super) fn not_started(&mut self, lane: LaneId, slots: usize, now: Duration) {
        let spacing = self.spacing(lane, now) * u32::try_from(slots).unwrap_or(u32::MAX);
        let entry = &mut self.lanes[lane];
        entry.next_start = entry.next_start.saturating_sub(spacing);
    }

    /// Lets the lane be looked at again at this time.
    pub(super) fn look_again(&mut self, lane: LaneId, until: Duration) {
        let entry = &mut self.lanes[lane];
        if let Some(before) = entry.paced_until.replace(until) {
            self.paced.remove(&(before, lane));
        }
        self.paced.insert((until, lane));
    }
}
