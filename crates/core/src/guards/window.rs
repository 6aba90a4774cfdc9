//! Counts over a rolling window, kept in buckets, for the budget and the breaker.
//!
//! A bucket is forgotten as a whole, so the memory is a ring of a few dozen entries, however many calls there are, and
//! nothing before the first count. Looking at it costs nothing but the sum that is kept anyway; moving on clears each bucket once, so every step is
//! O(1) on average and never more than one round of the ring.
//!
//! A clock that is set back does no harm. Up to one window back, what happens is counted where the ring already is: two
//! threads that disagree by a millisecond must not make the window pass twice as fast. From further back the ring
//! restarts at that time, with its counts: otherwise it would not move until the clock has caught up.

use std::time::Duration;

use crate::time::Timestamp;

/// The most buckets that a window may have.
pub(crate) const MAX_BUCKETS: usize = 3_601;

/// How many buckets of this width a span takes, rounded up.
pub(crate) fn buckets_of(span: Duration, width: Duration) -> usize {
    usize::try_from(span.as_nanos().div_ceil(width.as_nanos().max(1))).unwrap_or(usize::MAX)
}

/// `N` counts over the last so many buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window<const N: usize> {
    /// The width of a bucket in milliseconds, at least 1.
    width: u64,
    /// How many buckets the ring has.
    length: usize,
    /// The ring; bucket `n` of time is at `n % length`. Empty before the first count.
    ring: Box<[[u32; N]]>,
    /// The bucket of time that is being filled.
    latest: u64,
    /// What the whole ring adds up to.
    sums: [u64; N],
    /// How often the ring was put to another time because the clock was set back.
    rebases: u32,
}

/// The bucket in which something was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    bucket: u64,
    rebases: u32,
}

impl<const N: usize> Window<N> {
    /// A window of `buckets` buckets, the one that is being filled included; both limited to sensible values.
    pub(crate) fn new(width: Duration, buckets: usize) -> Self {
        let width = u64::try_from(width.as_millis()).unwrap_or(u64::MAX).max(1);
        let length = buckets.clamp(1, MAX_BUCKETS);
        Window { width, length, ring: Box::default(), latest: 0, sums: [0; N], rebases: 0 }
    }

    /// Moves on to `now`: what is older than the window is forgotten.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        let bucket = now.as_millis() / self.width;
        let length = self.length as u64;
        if bucket < self.latest {
            if self.latest - bucket > length {
                self.rebase(bucket);
            }
            return;
        }
        if !self.ring.is_empty() {
            for passed in self.latest + 1..=bucket.min(self.latest.saturating_add(length)) {
                let at = self.at(passed);
                let forgotten = std::mem::replace(&mut self.ring[at], [0; N]);
                for (sum, count) in self.sums.iter_mut().zip(forgotten) {
                    *sum -= u64::from(count);
                }
            }
        }
        self.latest = bucket;
    }

    /// Counts one in the bucket that is being filled. Returns the bucket.
    pub(crate) fn count(&mut self, which: usize) -> Entry {
        self.add(self.latest, which, 1);
        Entry { bucket: self.latest, rebases: self.rebases }
    }

    /// Counts `more` in a bucket of time that lies within the window.
    fn add(&mut self, bucket: u64, which: usize, more: u32) {
        if self.ring.is_empty() {
            self.ring = vec![[0; N]; self.length].into_boxed_slice();
        }
        let at = self.at(bucket);
        // A bucket that is full stays full: too few are counted then, after four thousand million in one second.
        let before = self.ring[at][which];
        self.ring[at][which] = before.saturating_add(more);
        self.sums[which] += u64::from(self.ring[at][which] - before);
    }

    /// Takes one count back, if its bucket is still in the window. Returns whether it is.
    pub(crate) fn take_back(&mut self, entry: Entry, which: usize) -> bool {
        if !self.holds(entry) {
            return false;
        }
        let at = self.at(entry.bucket);
        let is_counted = self.ring[at][which] > 0;
        if is_counted {
            self.ring[at][which] -= 1;
            self.sums[which] -= 1;
        }
        is_counted
    }

    /// Moves one count within its bucket, if that is still in the window.
    pub(crate) fn recount(&mut self, entry: Entry, from: usize, to: usize) {
        if self.take_back(entry, from) {
            self.add(entry.bucket, to, 1);
        }
    }

    fn holds(&self, entry: Entry) -> bool {
        let age = self.latest.checked_sub(entry.bucket);
        entry.rebases == self.rebases && !self.ring.is_empty() && age.is_some_and(|age| age < self.length as u64)
    }

    /// The buckets with a count, oldest first: when each begins, and its counts.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (Timestamp, [u32; N])> + '_ {
        let oldest = (self.latest + 1).saturating_sub(self.length as u64);
        let counts = move |bucket| self.ring.get(self.at(bucket)).copied().unwrap_or([0; N]);
        (oldest..=self.latest)
            .map(move |bucket| (Timestamp::from_millis(bucket.saturating_mul(self.width)), counts(bucket)))
            .filter(|(_, counts)| counts.iter().any(|count| *count > 0))
    }

    /// Counts what another window held, at `now`. What is later than `now` counts as if it were counted now.
    pub(crate) fn restore(&mut self, buckets: impl IntoIterator<Item = (Timestamp, [u32; N])>, now: Timestamp) {
        self.advance(now);
        for (began, counts) in buckets {
            let bucket = (began.as_millis() / self.width).min(self.latest);
            if self.latest - bucket < self.length as u64 {
                counts.into_iter().enumerate().for_each(|(which, count)| self.add(bucket, which, count));
            }
        }
    }

    /// Adds to a count of the bucket of this time, or takes from it as much as there is. Returns how much was added or
    /// taken; nothing if the bucket lies outside of the window.
    pub(crate) fn adjust(&mut self, at: Timestamp, which: usize, by: i64) -> u32 {
        let bucket = at.as_millis() / self.width;
        let size = u32::try_from(by.unsigned_abs()).unwrap_or(u32::MAX);
        if bucket > self.latest || self.latest - bucket >= self.length as u64 || size == 0 {
            return 0;
        }
        if by > 0 {
            self.add(bucket, which, size);
            return size;
        }
        let index = self.at(bucket);
        let taken = self.ring.get(index).map_or(0, |counts| counts[which].min(size));
        if taken > 0 {
            self.ring[index][which] -= taken;
            self.sums[which] -= u64::from(taken);
        }
        taken
    }

    /// What the whole window adds up to.
    pub(crate) fn sums(&self) -> [u64; N] {
        self.sums
    }

    /// What is in the oldest bucket, the next one to be forgotten.
    pub(crate) fn oldest(&self) -> [u32; N] {
        self.ring.get(self.at(self.latest + 1)).copied().unwrap_or([0; N])
    }

    /// When the next bucket begins.
    pub(crate) fn next_edge(&self) -> Timestamp {
        Timestamp::from_millis((self.latest + 1).saturating_mul(self.width))
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.ring = Box::default();
        self.sums = [0; N];
    }

    /// Puts the whole ring to another time, each bucket as old as before.
    fn rebase(&mut self, bucket: u64) {
        let length = self.length as u64;
        let (from, to) = (self.latest % length, bucket % length);
        let by = usize::try_from((to + length - from) % length).unwrap_or(0);
        if !self.ring.is_empty() {
            self.ring.rotate_right(by);
        }
        self.latest = bucket;
        self.rebases = self.rebases.wrapping_add(1);
    }

    fn at(&self, bucket: u64) -> usize {
        usize::try_from(bucket % self.length as u64).unwrap_or(0)
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
    fn counted(events: &[(u64, usize)]) -> Window<2> {
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
            let mut window = Window::<2>::new(SECOND, 3);
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
        let mut window = Window::<2>::new(Duration::ZERO, 0);
        for now in [u64::MAX, 0, u64::MAX, 5] {
            window.advance(at(now));
            window.count(1);
            assert_eq!(window.sums()[0], 0);
            assert!(window.sums()[1] <= 2, "{window:?}");
        }
        let mut window = Window::<2>::new(Duration::MAX, usize::MAX);
        window.advance(Timestamp::MAX);
        window.count(0);
        assert_eq!((window.sums(), window.next_edge()), ([1, 0], Timestamp::MAX));
    }

    #[test]
    fn a_full_bucket_stays_full() {
        let mut window = Window::<2>::new(SECOND, 3);
        window.add(0, 0, u32::MAX);
        window.count(0);
        assert_eq!(window.sums(), [u64::from(u32::MAX), 0]);
        window.advance(at(9_000));
        assert_eq!(window.sums(), [0, 0]);
    }

    #[test]
    fn a_count_is_taken_back_from_its_own_bucket_while_that_is_in_the_window() {
        let mut window = Window::<2>::new(SECOND, 3);
        window.advance(at(10_000));
        let [early, other] = [window.count(0), window.count(0)];
        window.advance(at(12_000));
        assert!(window.take_back(early, 0));
        assert_eq!((window.sums(), window.oldest()), ([1, 0], [1, 0]));
        window.recount(other, 0, 1);
        assert_eq!((window.sums(), window.oldest()), ([0, 1], [0, 1]));
        assert!(!window.take_back(early, 0), "there is nothing left to take");
        window.advance(at(13_000));
        window.recount(other, 1, 0);
        assert_eq!(window.sums(), [0, 0], "its bucket is forgotten");
    }

    #[test]
    fn a_count_from_before_the_clock_was_set_back_is_not_taken_back() {
        let mut window = Window::<2>::new(SECOND, 3);
        window.advance(at(3_600_000));
        let before = window.count(0);
        window.advance(at(5_000));
        assert!(!window.take_back(before, 0));
        assert_eq!(window.sums(), [1, 0]);
    }

    #[test]
    fn a_window_is_restored_from_its_buckets() {
        let window = counted(&[(10_000, 0), (11_999, 1), (12_500, 0)]);
        let kept: Vec<_> = window.buckets().collect();
        assert_eq!(kept, [(at(10_000), [1, 0]), (at(11_000), [0, 1]), (at(12_000), [1, 0])]);
        // when it is restored, what counts then
        for (now, sums) in [(12_999, [2, 1]), (13_000, [1, 1]), (15_000, [0, 0]), (11_000, [2, 1])] {
            let mut restored = Window::<2>::new(SECOND, 3);
            restored.restore(kept.iter().copied(), at(now));
            assert_eq!(restored.sums(), sums, "at {now}");
        }
    }
}
