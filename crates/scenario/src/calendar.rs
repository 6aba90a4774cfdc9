//! The event queue of a run: events come out by time, and in the order of insertion at the same time.
//!
//! A radix heap. Time only goes forward here, so an entry need not be sorted among all others: it lies in the
//! compartment of the highest bit in which its time differs from the present, and moves to lower ones as the present
//! comes nearer. Every move is along a vector, where a binary heap of a million entries would miss the cache at every
//! level.

/// An event, packed into 32 bits.
pub(crate) type Tag = u32;

/// Entries by time, in milliseconds from the beginning.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// The time of the last entry that was taken out.
    now: u32,
    /// How many entries of the first compartment have been taken out.
    taken: usize,
    /// Compartment 0 holds what is due now; `n` what differs from now in bit `n - 1` and in no higher one.
    compartments: [Vec<(u32, Tag)>; 33],
}

impl Calendar {
    /// An empty calendar at time zero.
    pub(crate) fn new() -> Self {
        Calendar { now: 0, taken: 0, compartments: std::array::from_fn(|_| Vec::new()) }
    }

    /// Adds an entry; one in the past is due now.
    pub(crate) fn put(&mut self, at: u32, tag: Tag) {
        let at = at.max(self.now);
        self.compartments[compartment(at, self.now)].push((at, tag));
    }

    /// Removes the next entry.
    pub(crate) fn take(&mut self) -> Option<(u32, Tag)> {
        if self.taken == self.compartments[0].len() {
            self.move_on()?;
        }
        let entry = self.compartments[0].get(self.taken).copied();
        self.taken += 1;
        entry
    }

    /// Goes to the time of the earliest entry, and spreads its compartment over the lower ones.
    fn move_on(&mut self) -> Option<()> {
        self.compartments[0].clear();
        self.taken = 0;
        let nearest = self.compartments.iter().position(|entries| !entries.is_empty())?;
        let mut entries = std::mem::take(&mut self.compartments[nearest]);
        self.now = entries.iter().map(|(at, _)| *at).min()?;
        for (at, tag) in entries.drain(..) {
            self.compartments[compartment(at, self.now)].push((at, tag));
        }
        // Its room is kept for the next entries of this distance.
        self.compartments[nearest] = entries;
        Some(())
    }
}

fn compartment(at: u32, now: u32) -> usize {
    (32 - (at ^ now).leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_out_by_time_and_then_in_the_order_in_which_they_were_put_in() {
        let mut calendar = Calendar::new();
        for (at, tag) in [(5, 0), (3, 1), (5, 2), (u32::MAX, 3), (0, 4), (3, 5), (1 << 20, 6)] {
            calendar.put(at, tag);
        }
        let order: Vec<_> = std::iter::from_fn(|| calendar.take()).collect();
        assert_eq!(order, [(0, 4), (3, 1), (3, 5), (5, 0), (5, 2), (1 << 20, 6), (u32::MAX, 3)]);
    }

    #[test]
    fn what_would_be_in_the_past_is_due_now_after_what_is_due_already() {
        let mut calendar = Calendar::new();
        calendar.put(10, 1);
        calendar.put(10, 2);
        assert_eq!(calendar.take(), Some((10, 1)));
        calendar.put(4, 3);
        let rest: Vec<_> = std::iter::from_fn(|| calendar.take()).collect();
        assert_eq!(rest, [(10, 2), (10, 3)]);
    }

    #[test]
    fn it_agrees_with_a_sorted_list_while_entries_are_added_on_the_way() {
        let mut calendar = Calendar::new();
        let mut sorted: std::collections::BTreeMap<(u32, u32), ()> =
            (0..500).map(|tag| ((tag * 7_919 % 1_000, tag), ())).collect();
        sorted.keys().for_each(|(at, _)| assert!(*at < 1_000));
        (0..500).for_each(|tag| calendar.put(tag * 7_919 % 1_000, tag));
        let mut next = 500;
        while let Some((at, tag)) = calendar.take() {
            assert_eq!(sorted.pop_first(), Some(((at, tag), ())));
            if next < 5_000 {
                let later = at + next * 31 % 4_000;
                calendar.put(later, next);
                sorted.insert((later, next), ());
                next += 1;
            }
        }
        assert!(sorted.is_empty() && next == 5_000);
    }
}
