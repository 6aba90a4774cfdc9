//! Wait queue: lanes that could use a slot and get none, because their pool is used up.
//!
//! First come, first served within a tenant; tenants take turns. Lanes that hold no slot at all (*starved*) have a
//! queue of their own, which is served before the other one.

use std::collections::{BTreeMap, VecDeque};

use super::TenantKey;
use crate::admission::Pool;
use crate::schedule::LaneId;

/// Lanes that wait for their pool.
#[derive(Debug, Default)]
pub(super) struct WaitQueue {
    queues: [[Queue; 2]; Pool::ALL.len()],
    /// Where each lane is. Entries of a queue that are not found here have left.
    standing: BTreeMap<LaneId, Standing>,
    stamps: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Standing {
    pool: Pool,
    is_starved: bool,
    stamp: u64,
}

#[derive(Debug, Default)]
struct Queue {
    by_tenant: BTreeMap<TenantKey, VecDeque<(LaneId, u64)>>,
    /// Tenants in the order of their turns.
    turns: VecDeque<TenantKey>,
}

impl WaitQueue {
    /// Adds the lane at the end of the queue, unless it is already in it.
    pub(super) fn join(&mut self, lane: LaneId, tenant: TenantKey, pool: Pool, is_starved: bool) {
        let stands = |standing: &Standing| standing.pool == pool && standing.is_starved == is_starved;
        if self.standing.get(&lane).is_some_and(stands) {
            return;
        }
        self.stamps += 1;
        self.standing.insert(lane, Standing { pool, is_starved, stamp: self.stamps });
        let queue = &mut self.queues[pool as usize][usize::from(is_starved)];
        let lanes = queue.by_tenant.entry(tenant).or_default();
        if lanes.is_empty() {
            queue.turns.push_back(tenant);
        }
        lanes.push_back((lane, self.stamps));
    }

    /// Takes the lane out of the queue. Returns whether it was in it.
    pub(super) fn leave(&mut self, lane: LaneId) -> bool {
        self.standing.remove(&lane).is_some()
    }

    /// The first lane of the tenant that is next.
    pub(super) fn first(&mut self, pool: Pool, starved: bool) -> Option<LaneId> {
        let queue = &mut self.queues[pool as usize][usize::from(starved)];
        while let Some(tenant) = queue.turns.front() {
            let lanes = queue.by_tenant.entry(*tenant).or_default();
            while let Some((lane, stamp)) = lanes.front() {
                if self.standing.get(lane).is_some_and(|standing| standing.stamp == *stamp) {
                    return Some(*lane);
                }
                lanes.pop_front();
            }
            queue.by_tenant.remove(tenant);
            queue.turns.pop_front();
        }
        None
    }

    /// Moves on to the next tenant.
    pub(super) fn pass(&mut self, pool: Pool, starved: bool) {
        let turns = &mut self.queues[pool as usize][usize::from(starved)].turns;
        turns.rotate_left(turns.len().min(1));
    }

    /// The most tenants that can have lanes in this queue.
    pub(super) fn tenants(&self, pool: Pool, starved: bool) -> usize {
        self.queues[pool as usize][usize::from(starved)].turns.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.standing.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(line: &mut WaitQueue, pool: Pool, starved: bool) -> Vec<LaneId> {
        std::iter::from_fn(|| {
            let lane = line.first(pool, starved)?;
            line.leave(lane);
            line.pass(pool, starved);
            Some(lane)
        })
        .collect()
    }

    #[test]
    fn lanes_of_one_tenant_are_served_in_their_order_and_once() {
        let mut line = WaitQueue::default();
        for lane in [3, 1, 2, 1] {
            line.join(lane, 0, Pool::Slow, true);
        }
        line.leave(2);
        assert_eq!(drain(&mut line, Pool::Slow, true), [3, 1]);
        assert!(line.is_empty());
    }

    #[test]
    fn tenants_take_turns_however_many_lanes_they_have() {
        let mut line = WaitQueue::default();
        for lane in 0..4 {
            line.join(lane, 7, Pool::Fast, false);
        }
        line.join(10, 8, Pool::Fast, false);
        assert_eq!(drain(&mut line, Pool::Fast, false), [0, 10, 1, 2, 3]);
    }

    #[test]
    fn a_lane_that_loses_its_last_slot_moves_to_the_starved() {
        let mut line = WaitQueue::default();
        line.join(1, 0, Pool::Slow, false);
        line.join(1, 0, Pool::Slow, true);
        assert_eq!(drain(&mut line, Pool::Slow, false), [0; 0]);
        line.join(1, 0, Pool::Slow, true);
        assert_eq!(drain(&mut line, Pool::Slow, true), [1]);
    }
}
