//! A bounded amount that many lanes share, split into pools.

use super::Pool;

/// How much of a pool all lanes of a tenant may hold, in multiples of what is free: one tenant alone gets at most 8/9
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

    /// How much a lane of this pool could take if it were alone. `stuck` is what its tenant's slow and unknown lanes
    /// hold.
    ///
    /// A lane that turns slow takes its slots along. So slow lanes may hold more than their half, up to everything if
    /// fast lanes begin to hang, at once or one after the other. Therefore:
    ///
    /// - Fast lanes hold at most three quarters, beyond their first slots ([`Quota::unheld`]).
    /// - Once slow lanes hold more than half, the rest is kept for lanes that hold little: the last eighth is not for
    ///   fast lanes beyond their first slots, the last sixteenth not for unknown lanes, the last thirty-second not even
    ///   for those of a tenant that has not used up half itself.
    /// - What slow lanes hold beyond their half is taken from the quarter of the unknown ones, down to a sixteenth.
    ///   Otherwise a stream of new lanes that all hang would use up everything, a quarter at a time.
    pub(crate) fn free(&self, pool: Pool, stuck: usize) -> usize {
        let [fast, unknown, slow] = self.held;
        let free = self.unheld();
        let part = |of: usize| self.capacity / of;
        let (half, quarter) = (part(2).max(1), part(4).max(1));
        let over = slow.saturating_sub(half);
        // At least one slot is kept, also where a part of the capacity is less than one.
        let beyond = |last: usize| if over > 0 { free.saturating_sub(part(last).max(1)) } else { free };
        match pool {
            Pool::Fast => beyond(8).min((self.capacity - part(4)).saturating_sub(fast)),
            Pool::Unknown => {
                let most = quarter.saturating_sub(over).max(part(16));
                beyond(if stuck > half { 16 } else { 32 }).min(most.saturating_sub(unknown))
            }
            Pool::Slow => free.min(half.saturating_sub(slow)),
        }
    }

    /// What no lane holds.
    pub(crate) fn unheld(&self) -> usize {
        self.capacity.saturating_sub(self.held.iter().sum())
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

    /// What `lanes` lanes of this pool come to hold if each of them takes as much as it can get.
    fn settled(quota: &mut Quota, pool: Pool, lanes: usize) -> Vec<usize> {
        let mut own = vec![0; lanes];
        loop {
            let mut has_changed = false;
            for lane in &mut own {
                if share(*lane, quota.free(pool, 0), 1) > 0 {
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
        let cases = [(1, 1_536, 1_536, 1_536), (3, 768, 768, 768), (40, 74, 75, 74), (1_000, 3, 4, 3)];
        for (lanes, least, most, free) in cases {
            let mut quota = Quota::new(4_096);
            let own = settled(&mut quota, Pool::Fast, lanes);
            assert_eq!((own.iter().min(), own.iter().max()), (Some(&least), Some(&most)), "{lanes} lanes");
            assert_eq!(quota.free(Pool::Fast, 0), free, "{lanes} lanes");
        }
    }

    #[test]
    fn slow_lanes_hold_half_at_most_and_unknown_ones_a_quarter() {
        let mut quota = Quota::new(4_096);
        settled(&mut quota, Pool::Slow, 5_000);
        assert_eq!((quota.held(), quota.free(Pool::Slow, 0)), (2_048, 0));
        settled(&mut quota, Pool::Unknown, 5_000);
        assert_eq!((quota.held(), quota.free(Pool::Unknown, 0)), (3_072, 0));
        assert_eq!(share(0, quota.free(Pool::Fast, 0), 1), 512, "a healthy lane beside 10,000 others");
    }

    #[test]
    fn lanes_that_turn_slow_leave_something_to_those_who_hold_little() {
        let mut quota = Quota::new(4_096);
        let mut turn = |pool: Pool, stuck: usize| {
            let mut taken = 0;
            while taken < 128 && share(taken, quota.free(pool, stuck), 8) > 0 {
                taken += 1;
                quota.take(pool, 1);
            }
            quota.give_back(pool, taken);
            quota.take(Pool::Slow, taken);
            quota.unheld()
        };
        let left: Vec<usize> = (0..40).map(|_| turn(Pool::Fast, 0)).collect();
        assert_eq!(left.last(), Some(&512), "an eighth is left by fast lanes that hang: {left:?}");
        let left: Vec<usize> = (0..40).map(|_| turn(Pool::Unknown, 4_000)).collect();
        assert_eq!(left.last(), Some(&256), "a sixteenth by unknown ones: {left:?}");
        let left: Vec<usize> = (0..40).map(|_| turn(Pool::Unknown, 0)).collect();
        assert_eq!(left.last(), Some(&128), "a thirty-second by those of other tenants: {left:?}");
    }

    #[test]
    fn new_lanes_that_hang_leave_a_slot_for_a_fast_one_however_few_slots_there_are() {
        for capacity in 3..=70 {
            let mut quota = Quota::new(capacity);
            settled(&mut quota, Pool::Slow, capacity);
            for _ in 0..100 {
                while quota.free(Pool::Unknown, 0) > 0 {
                    quota.take(Pool::Slow, 1);
                }
            }
            assert!(quota.unheld() > 0, "of {capacity}");
        }
    }

    #[test]
    fn the_smallest_capacity_still_serves_every_pool() {
        for pool in Pool::ALL {
            assert_eq!(share(0, Quota::new(1).free(pool, 0), 1), 1, "{pool:?}");
        }
    }
}
