//! Two counts over a rolling window, kept in buckets, for the budget and the breaker.
//!
//! A bucket is forgotten as a whole, so the memory is a ring of a few dozen pairs, however many calls there are.
//! Looking at it costs nothing but the sum that is kept anyway; moving on clears each bucket once, so every step is
//! O(1) on average and never more than one round of the ring.
//!
//! A clock that is set back does no harm. Up to one window back, what happens is counted where the ring already is: two
//! threads that disagree by a millisecond must not make the window pass twice as fast. From further back the ring
//! restarts at that time, with its counts: otherwise it would not move until the clock has caught up.

use std::time::Duration;

use crate::time::Timestamp;

/// What is counted in one bucket.
pub(crate) type Pair = [u32; 2];

/// Two counts over the last so many buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// The width of a bucket in milliseconds, at least 1.
    width: u64,
    /// The ring; bucket `n` of time is at `n % ring.len()`.
    ring: Box<[Pair]>,
    /// The bucket of time that is being filled.
    latest: u64,
    /// What the whole ring adds up to.
    sums: [u64; 2],
}

impl Window {
    /// The most buckets that a window may have.
    pub(crate) const MAX_BUCKETS: usize = 3_601;

    /// How many buckets of this width a span takes, rounded up.
    pub(crate) fn buckets(span: Duration, width: Duration) -> usize {
        usize::try_from(span.as_nanos().div_ceil(width.as_nanos().max(1))).unwrap_or(usize::MAX)
    }

    /// A window of `buckets` buckets, the one that is being filled included; both limited to sensible values.
    pub(crate) fn new(width: Duration, buckets: usize) -> Self {
        let width = u64::try_from(width.as_millis()).unwrap_or(u64::MAX).max(1);
        let ring = vec![[0; 2]; buckets.clamp(1, Self::MAX_BUCKETS)].into_boxed_slice();
        Window { width, ring, latest: 0, sums: [0; 2] }
    }

    /// Moves on to `now`: what is older than the window is forgotten.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        let bucket = now.as_millis() / self.width;
        let length = self.ring.len() as u64;
        if bucket < self.latest {
            if self.latest - bucket > length {
                self.rebase(bucket);
            }
            return;
        }
        for passed in self.latest + 1..=bucket.min(self.latest.saturating_add(length)) {
            let at = self.at(passed);
            let [first, second] = std::mem::take(&mut self.ring[at]);
            self.sums[0] -= u64::from(first);
            self.sums[1] -= u64::from(second);
        }
        self.latest = bucket;
    }

    /// Counts one in the bucket that is being filled.
    pub(crate) fn count(&mut self, which: usize) {
        let at = self.at(self.latest);
        // A bucket that is full stays full: too few are counted then, after four thousand million in one second.
        if let Some(more) = self.ring[at][which].checked_add(1) {
            self.ring[at][which] = more;
            self.sums[which] += 1;
        }
    }

    /// What the whole window adds up to.
    pub(crate) fn sums(&self) -> [u64; 2] {
        self.sums
    }

    /// What is in the oldest bucket, the next one to be forgotten.
    pub(crate) fn oldest(&self) -> Pair {
        self.ring[self.at(self.latest + 1)]
    }

    /// When the next bucket begins.
    pub(crate) fn next_edge(&self) -> Timestamp {
        Timestamp::from_millis((self.latest + 1).saturating_mul(self.width))
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.ring.fill([0; 2]);
        self.sums = [0; 2];
    }

    /// Puts the whole ring to another time, each bucket as old as before.
    fn rebase(&mut self, bucket: u64) {
        let length = self.ring.len() as u64;
        let (from, to) = (self.latest % length, bucket % length);
        let by = usize::try_from((to + length - from) % length).unwrap_or(0);
        self.ring.rotate_right(by);
        self.latest = bucket;
    }

    fn at(&self, bucket: u64) -> usize {
        usize::try_from(bucket % self.ring.len() as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// A window of three seconds with (first, second) counted at these times.
    fn counted(events: &[(u64, usize)]) -> Window {
        let mut window = Window::new(SECOND, 3);
        for (millis, which) in events {
            window.advance(at(*millis));
            window.count(*which);
        }
        window
    }

    #[test]
    fn what_is_older_than_the_window_is_forgotten_bucket_by_bucket() {
        let events = [(10_000, 0), (10_999, 1), (11_000, 0), (12_500, 0)];
        for (now, expected, oldest) in [
            (12_500, [3, 1], [1, 1]),
            (12_999, [3, 1], [1, 1]),
            (13_000, [2, 0], [1, 0]),
            (14_000, [1, 0], [1, 0]),
            (15_000, [0, 0], [0, 0]),
            (u64::MAX, [0, 0], [0, 0]),
        ] {
            let mut window = counted(&events);
            window.advance(at(now));
            assert_eq!((window.sums(), window.oldest()), (expected, oldest), "at {now}");
        }
    }

    #[test]
    fn the_next_edge_is_where_the_next_bucket_begins() {
        for (now, edge) in [(0, 1_000), (999, 1_000), (1_000, 2_000), (12_345, 13_000)] {
            let mut window = Window::new(SECOND, 3);
            window.advance(at(now));
            assert_eq!(window.next_edge(), at(edge), "at {now}");
        }
    }

    #[test]
    fn a_small_step_back_is_counted_where_the_ring_is() {
        let mut window = counted(&[(12_500, 0)]);
        for _ in 0..10 {
            window.advance(at(9_500));
            window.advance(at(12_500));
        }
        assert_eq!(window.sums(), [1, 0], "going back and forth does not make time pass");
        window.advance(at(11_000));
        window.count(0);
        window.advance(at(14_999));
        assert_eq!(window.sums(), [2, 0]);
        window.advance(at(15_000));
        assert_eq!(window.sums(), [0, 0]);
    }

    #[test]
    fn a_large_step_back_begins_anew_with_what_was_counted() {
        let mut window = counted(&[(3_600_000, 0), (3_601_000, 1)]);
        window.advance(at(5_500));
        assert_eq!(window.sums(), [1, 1]);
        assert_eq!(window.next_edge(), at(6_000));
        window.advance(at(6_000));
        assert_eq!((window.sums(), window.oldest()), ([1, 1], [1, 0]), "each as old as before");
        window.advance(at(7_000));
        assert_eq!(window.sums(), [0, 1]);
        window.advance(at(8_000));
        assert_eq!(window.sums(), [0, 0]);
    }

    #[test]
    fn nothing_overflows_at_either_end_of_time() {
        let mut window = Window::new(Duration::ZERO, 0);
        for now in [u64::MAX, 0, u64::MAX, 5] {
            window.advance(at(now));
            window.count(1);
            assert_eq!(window.sums()[0], 0);
            assert!(window.sums()[1] <= 2, "{window:?}");
        }
        let mut window = Window::new(Duration::MAX, usize::MAX);
        window.advance(Timestamp::MAX);
        window.count(0);
        assert_eq!((window.sums(), window.next_edge()), ([1, 0], Timestamp::MAX));
    }

    #[test]
    fn a_full_bucket_stays_full() {
        let mut window = Window::new(SECOND, 3);
        window.ring[0] = [u32::MAX, 0];
        window.sums = [u64::from(u32::MAX), 0];
        window.count(0);
        assert_eq!(window.sums(), [u64::from(u32::MAX), 0]);
        window.advance(at(9_000));
        assert_eq!(window.sums(), [0, 0]);
    }
}
