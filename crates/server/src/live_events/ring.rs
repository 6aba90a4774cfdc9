//! The last items of a sequence, with their numbers.

use std::collections::VecDeque;

/// The last items of a sequence. The first item ever has the number 1.
#[derive(Debug)]
pub(super) struct Ring<T> {
    items: VecDeque<T>,
    most: usize,
    last: u64,
}

impl<T> Ring<T> {
    /// Keeps the last `most` items, at least one. The memory for all of them is reserved now.
    pub(super) fn new(most: usize) -> Self {
        let most = most.max(1);
        Ring { items: VecDeque::with_capacity(most), most, last: 0 }
    }

    /// Adds an item. Returns the one that had to leave.
    pub(super) fn push(&mut self, item: T) -> Option<T> {
        let oldest = if self.items.len() == self.most { self.items.pop_front() } else { None };
        self.items.push_back(item);
        self.last += 1;
        oldest
    }

    /// The number of the last item; 0 if there was none.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// The number of the last item that has left; 0 if none has.
    pub(super) fn last_gone(&self) -> u64 {
        self.last - self.items.len() as u64
    }

    /// The items that are still there and have a number above `number`, with their numbers.
    pub(super) fn after(&self, number: u64) -> impl Iterator<Item = (u64, &T)> {
        let gone = self.last_gone();
        let first = number.max(gone);
        let skipped = usize::try_from(first - gone).unwrap_or(usize::MAX).min(self.items.len());
        (first + 1..).zip(self.items.range(skipped..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of random numbers (xorshift), so that a failure can be repeated.
    struct Random(u64);

    impl Random {
        fn below(&mut self, most: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % most
        }
    }

    #[test]
    fn random_readers_see_every_item_once_or_are_told_how_many_are_gone() {
        for seed in 1..200 {
            let mut random = Random(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
            let most = 1 + random.below(20);
            let mut ring = Ring::new(most as usize);
            // The model: an item is its own number, and all items ever are kept.
            let mut pushed = 0;
            let mut readers = [0_u64; 3];
            for _ in 0..300 {
                match random.below(3) {
                    0 => {
                        let at = random.below(3) as usize;
                        let expected_gone = u64::saturating_sub(pushed, most);
                        assert_eq!((ring.last(), ring.last_gone()), (pushed, expected_gone), "seed {seed}");
                        let cursor = readers[at].max(expected_gone);
                        let wanted = random.below(10) as usize;
                        let read: Vec<(u64, u64)> =
                            ring.after(readers[at]).take(wanted).map(|(number, item)| (number, *item)).collect();
                        let expected: Vec<(u64, u64)> = (cursor + 1..=pushed).take(wanted).map(|n| (n, n)).collect();
                        assert_eq!(read, expected, "seed {seed}");
                        readers[at] = cursor + read.len() as u64;
                    }
                    _ => {
                        pushed += 1;
                        let left = ring.push(pushed);
                        assert_eq!(left, pushed.checked_sub(most).filter(|left| *left > 0), "seed {seed}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_number_that_is_not_there_yet_is_followed_by_nothing() {
        let mut ring = Ring::new(2);
        ring.push('a');
        assert_eq!(ring.after(7).count(), 0);
        assert_eq!(ring.after(u64::MAX - 1).count(), 0);
    }
}
