//! Offers: which lane gets a free slot. First lanes that hold nothing, then the lane that gave it back, then the others
//! in the queue.

use std::time::Duration;

use super::{NoSlot, Slots};
use crate::admission::Pool;
use crate::schedule::LaneId;

/// The most lanes of one queue that refuse a free slot in one offer. The next offer continues behind them: a release
/// must not cost a check of every tenant.
const REFUSALS: usize = 16;

impl Slots {
    /// Queues the lane, which has due work and no room, unless its own limits are the reason. A slow lane that waits
    /// for its next start is looked at again then.
    pub(crate) fn join_queue(&mut self, lane: LaneId, now: Duration) {
        match self.more(lane, now) {
            Err(held @ (NoSlot::Pool | NoSlot::Tenant | NoSlot::Memory | NoSlot::StartRate)) => {
                if held == NoSlot::StartRate {
                    self.next_slow_starts = Some(self.start_rate.next_portion(now));
                }
                let entry = &self.lanes[lane];
                self.queue.join(lane, entry.tenant, entry.pool, entry.held == 0);
            }
            Err(NoSlot::Paced(until)) => self.look_again(lane, until),
            Err(NoSlot::LaneLimit) | Ok(_) => {}
        }
    }

    /// Gives a slot to one task that was claimed ahead; a reserved one if there is one. Returns whether it did.
    pub(super) fn give_one(&mut self, lane: LaneId, now: Duration) -> bool {
        if self.lanes[lane].reserved > 0 {
            self.lanes[lane].reserved -= 1;
        } else if self.more_slots(lane, now).is_ok() {
            self.hold(lane, 1, now);
        } else {
            return false;
        }
        self.drop_unsent(lane, 1);
        true
    }

    pub(super) fn release(&mut self, lane: LaneId, slots: usize, now: Duration) {
        if slots == 0 {
            self.serve(lane, now);
            return;
        }
        let entry = &mut self.lanes[lane];
        debug_assert!(entry.held >= slots, "released more slots than the lane holds");
        entry.held = entry.held.saturating_sub(slots);
        let of_tenant = &mut self.tenants[entry.tenant].slots[entry.pool as usize];
        *of_tenant = of_tenant.saturating_sub(slots);
        self.slots.give_back(entry.pool, slots);
        self.offer(lane, now);
    }

    /// Offers free slots: to lanes that hold nothing, then to the lane that gave them back, then to the others.
    pub(super) fn offer(&mut self, lane: LaneId, now: Duration) {
        self.first_pool = self.first_pool.next();
        self.offer_in_line(true, now);
        self.serve(lane, now);
        self.offer_in_line(false, now);
    }

    pub(super) fn offer_in_line(&mut self, to_starved: bool, now: Duration) {
        for pool in [self.first_pool, self.first_pool.next(), self.first_pool.next().next()] {
            let mut refused = 0;
            let most = self.queue.tenants(pool, to_starved).min(REFUSALS);
            // Slow lanes that get slots now start together.
            let mut starts = if pool == Pool::Slow { self.start_rate.starts(now) } else { usize::MAX };
            while refused < most && self.slots.unheld() > 0 {
                let Some(lane) = self.queue.first(pool, to_starved) else { break };
                // The lane may have become unknown while it waited: then it is in another queue now.
                self.classify(lane, now);
                if self.lanes[lane].pool != pool {
                    continue;
                }
                if starts == 0 {
                    self.next_slow_starts = Some(self.start_rate.next_portion(now));
                    break;
                }
                match self.more(lane, now) {
                    Ok(_) => {
                        starts -= 1;
                        self.queue.leave(lane);
                        self.queue.pass(pool, to_starved);
                    }
                    // It no longer waits for its pool.
                    Err(NoSlot::LaneLimit) => {
                        self.queue.leave(lane);
                        continue;
                    }
                    Err(NoSlot::Paced(until)) => {
                        self.queue.leave(lane);
                        self.look_again(lane, until);
                        continue;
                    }
                    // The tenant has its share, or the lane holds more than is free: another lane may fit.
                    Err(held) => {
                        if held == NoSlot::Pool && !to_starved {
                            self.queue.leave(lane);
                            self.queue.join(lane, self.lanes[lane].tenant, pool, to_starved);
                        }
                        self.queue.pass(pool, to_starved);
                        refused += 1;
                        continue;
                    }
                }
                if to_starved && self.lanes[lane].waiting.is_empty() {
                    // Reserved, because other lanes would take it before its claim.
                    self.hold(lane, 1, now);
                    self.lanes[lane].reserved += 1;
                }
                self.serve(lane, now);
            }
        }
    }

    /// Gives slots to the lane's tasks that wait for one, and marks the lane for a claim.
    pub(super) fn serve(&mut self, lane: LaneId, now: Duration) {
        while !self.lanes[lane].waiting.is_empty() && self.give_one(lane, now) {
            let Some((_, granted)) = self.lanes[lane].waiting.pop_front() else { break };
            // A task that no longer waits finds that it was granted a slot, and gives it back.
            granted.send(()).ok();
        }
        if !self.lanes[lane].waiting.is_empty() {
            self.join_queue(lane, now);
        }
        self.served.push(lane);
    }
}
