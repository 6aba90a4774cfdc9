//! A bounded amount that many lanes share, split into pools.

use redrive_core::planted::{self, Bug};

use super::Pool;

/// How much of a tenant's pool all of its lanes may hold, in multiples of what is free: one tenant alone gets at most 8/9
/// of a pool, and a ninth stays free for the next one.
pub(crate) const TENANT_WEIGHT: usize = 8;

/// How many more a holder of `own` may take of `free`: one as long as it holds fewer than `weight` times what is free.
pub(crate) fn share(own: usize, free: usize, weight: usize) -> usize {
    let most = weight.saturating_mul(free.saturating_add(1)).saturating_sub(own) / (weight + 1);
    most.min(free)
}

/// A bounded amount (slots, bytes), and how much of it each pool holds.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    capacity: usize,
    held: [usize; Pool::ALL.len()],
}

impl Quota {
    pub(crate) fn new(capacity: usize) -> Self {
        Quota { capacity, held: [0; Pool::ALL.len()] }
    }

    /// How much a lane of this pool could take if it were alone.
    ///
    /// A lane that turns slow takes its slots along, so slow lanes may hold more than their half for a while. What they
    /// hold beyond it is taken from the quarter of the unknown ones: else a stream of new lanes that all hang would eat
    /// up everything, a quarter at a time.
    pub(crate) fn free(&self, pool: Pool) -> usize {
        let [fast, unknown, slow] = self.held;
        let free = self.capacity.saturating_sub(fast + unknown + slow);
        let (half, quarter) = ((self.capacity / 2).max(1), (self.capacity / 4).max(1));
        match pool {
            Pool::Fast => free,
            Pool::Unknown if planted::is(Bug::UnknownLanesTakeAll) => free,
            Pool::Slow if planted::is(Bug::SlowLanesTakeAll) => free,
            Pool::Unknown => free.min(quarter.saturating_sub(unknown + slow.saturating_sub(half))),
            Pool::Slow => free.min(half.saturating_sub(slow)),
        }
    }

    pub(crate) fn take(&mut self, pool: Pool, amount: usize) {
        self.held[pool as usize] += amount;
    }

    pub(crate) fn give_back(&mut self, pool: Pool, amount: usize) {
        let held = &mut self.held[pool as usize];
        debug_assert!(*held >= amount, "given back more than was taken");
        *held = held.saturating_sub(amount);
    }

    /// How much is held in all.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.held.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `lanes` lanes of this pool come to hold if each of them wants as much as it can get.
    fn settled(quota: &mut Quota, pool: Pool, lanes: usize) -> Vec<usize> {
        let mut own = vec![0; lanes];
        loop {
            let mut has_changed = false;
            for lane in &mut own {
                if share(*lane, quota.free(pool), 1) > 0 {
                    quota.take(pool, 1);
                    *lane += 1;
                    has_changed = true;
                }
            }
            if !has_changed {
                return own;
            }
        }
    }

    #[test]
    fn a_share_is_taken_one_by_one_while_less_is_held_than_is_free() {
        for weight in [1, 2, 8] {
            for own in 0..30 {
                for free in 0..30 {
                    let (mut held, mut left, mut taken) = (own, free, 0);
                    while held < weight * left {
                        (held, left, taken) = (held + 1, left - 1, taken + 1);
                    }
                    assert_eq!(share(own, free, weight), taken, "{own} held, {free} free, weight {weight}");
                }
            }
        }
    }

    #[test]
    fn greedy_lanes_share_evenly_and_leave_as_much_for_the_next() {
        // lanes, the least and the most that one holds, what stays free
        let cases = [(1, 2_048, 2_048, 2_048), (3, 1_024, 1_024, 1_024), (40, 99, 100, 99), (1_000, 4, 5, 4)];
        for (lanes, least, most, free) in cases {
            let mut quota = Quota::new(4_096);
            let own = settled(&mut quota, Pool::Fast, lanes);
            assert_eq!((own.iter().min(), own.iter().max()), (Some(&least), Some(&most)), "{lanes} lanes");
            assert_eq!(quota.free(Pool::Fast), free, "{lanes} lanes");
        }
    }

    #[test]
    fn slow_lanes_hold_half_at_most_and_unknown_ones_a_quarter() {
        let mut quota = Quota::new(4_096);
        settled(&mut quota, Pool::Slow, 5_000);
        assert_eq!((quota.held(), quota.free(Pool::Slow)), (2_048, 0));
        settled(&mut quota, Pool::Unknown, 5_000);
        assert_eq!((quota.held(), quota.free(Pool::Unknown)), (3_072, 0));
        assert_eq!(share(0, quota.free(Pool::Fast), 1), 512, "a healthy lane beside 10,000 others");
    }

    #[test]
    fn unknown_lanes_that_turn_slow_leave_a_quarter_to_the_fast_ones() {
        let mut quota = Quota::new(4_096);
        for _ in 0..20 {
            let taken: usize = settled(&mut quota, Pool::Unknown, 5_000).iter().sum();
            quota.give_back(Pool::Unknown, taken);
            quota.take(Pool::Slow, taken);
        }
        assert_eq!((quota.free(Pool::Unknown), quota.free(Pool::Fast)), (0, 1_024));
    }

    #[test]
    fn the_smallest_capacity_still_serves_every_pool() {
        for pool in Pool::ALL {
            assert_eq!(share(0, Quota::new(1).free(pool), 1), 1, "{pool:?}");
        }
    }
}
