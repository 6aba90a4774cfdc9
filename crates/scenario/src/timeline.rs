//! The timeline of a run, in slots that grow wider as the run grows longer.
//!
//! A run may last a minute or a month, which is not known before it ends. So it starts with slots of a tenth of a
//! second, and whenever there are too many of them, neighbours are merged. Each width is a multiple of the one before,
//! so that a slot is never cut in two. The beginning is kept in narrow slots as well, so that a chart of the first
//! minute of a day shows seconds.

use std::time::Duration;

/// The counts of one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Attempts that were sent.
    pub sends: u32,
    /// Of these, retries.
    pub retries: u32,
    /// Attempts that succeeded.
    pub successes: u32,
    /// Attempts that failed.
    pub failures: u32,
    /// The most requests that a guard held back at once.
    pub held: u32,
    /// The most attempts under way at once.
    pub in_flight: u32,
    /// The most requests that had arrived and not ended yet, at once.
    pub open: u32,
}

impl Bucket {
    /// Adds the counts of another interval.
    fn add(&mut self, other: &Bucket) {
        self.sends += other.sends;
        self.retries += other.retries;
        self.successes += other.successes;
        self.failures += other.failures;
        self.held = self.held.max(other.held);
        self.in_flight = self.in_flight.max(other.in_flight);
        self.open = self.open.max(other.open);
    }
}

/// The number of requests in each state at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Level {
    /// Requests that a guard holds back.
    pub(crate) held: u32,
    /// Attempts under way.
    pub(crate) in_flight: u32,
    /// Requests that have arrived and not ended yet.
    pub(crate) open: u32,
}

/// The widths of a slot, in milliseconds, each a multiple of the one before.
const WIDTHS: [u32; 9] = [100, 200, 1_000, 2_000, 10_000, 20_000, 60_000, 600_000, 3_600_000];
/// The most slots.
const SLOTS: usize = 1 << 15;
/// The possible widths of a bucket, in milliseconds: round times.
const NICE: [u32; 19] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000,
    3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000,
];

/// The counts of a run over time.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// Which of the widths.
    width: usize,
    slots: Vec<Bucket>,
    /// The first slots as they were before any were put together.
    fine: Option<Vec<Bucket>>,
    level: Level,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        Timeline { width: 0, slots: vec![Bucket::default()], fine: None, level: Level::default() }
    }

    /// The slot of this time, which must not be before the last one that was asked for.
    pub(crate) fn at(&mut self, millis: u32) -> &mut Bucket {
        let slot = self.slot(millis);
        &mut self.slots[slot]
    }

    /// Records the number of requests in each state from now on.
    pub(crate) fn level(&mut self, millis: u32, level: Level) {
        if level == self.level {
            return;
        }
        let slot = self.slot(millis);
        self.level = level;
        let bucket = &mut self.slots[slot];
        bucket.held = bucket.held.max(level.held);
        bucket.in_flight = bucket.in_flight.max(level.in_flight);
        bucket.open = bucket.open.max(level.open);
    }

    /// When this part of all sends had been made, in milliseconds; rounded up to a slot.
    pub(crate) fn sent_by(&self, percent: u64) -> u64 {
        let all: u64 = self.slots.iter().map(|slot| u64::from(slot.sends)).sum();
        let mut sent = 0;
        let at = self.slots.iter().position(|slot| {
            sent += u64::from(slot.sends);
            100 * sent >= percent * all
        });
        (at.unwrap_or(0) as u64 + 1) * self.millis()
    }

    /// The buckets of `width` milliseconds up to `until`, and everything after that in one.
    pub(crate) fn buckets(&self, width: u64, until: u64) -> (Vec<Bucket>, Bucket) {
        let mut buckets = vec![Bucket::default(); usize::try_from(until.div_ceil(width)).unwrap_or(0)];
        let mut later = Bucket::default();
        let fine = self.fine_until(until);
        let slots = fine.unwrap_or(&self.slots);
        for (at, slot) in slots.iter().enumerate() {
            let bucket = usize::try_from(at as u64 * self.finest(until) / width).unwrap_or(usize::MAX);
            buckets.get_mut(bucket).unwrap_or(&mut later).add(slot);
        }
        if let Some(fine) = fine {
            self.add_after(fine, &mut later);
        }
        (buckets, later)
    }

    /// The width of the slots that [`Timeline::buckets`] are made of.
    pub(crate) fn finest(&self, until: u64) -> u64 {
        if self.fine_until(until).is_some() { u64::from(WIDTHS[0]) } else { self.millis() }
    }

    fn fine_until(&self, until: u64) -> Option<&[Bucket]> {
        self.fine.as_deref().filter(|fine| until <= fine.len() as u64 * u64::from(WIDTHS[0]))
    }

    /// Adds what happened after the fine slots. One of the others may begin among them, so counts are what is left of
    /// all.
    fn add_after(&self, fine: &[Bucket], later: &mut Bucket) {
        let end = fine.len() as u64 * u64::from(WIDTHS[0]);
        let (mut before, mut all) = (Bucket::default(), Bucket::default());
        fine.iter().for_each(|slot| before.add(slot));
        self.slots.iter().for_each(|slot| all.add(slot));
        let mut after = Bucket::default();
        let first = usize::try_from(end / self.millis()).unwrap_or(usize::MAX);
        self.slots.iter().skip(first).for_each(|slot| after.add(slot));
        later.add(&Bucket {
            sends: all.sends - before.sends,
            retries: all.retries - before.retries,
            successes: all.successes - before.successes,
            failures: all.failures - before.failures,
            ..after
        });
    }

    /// The width of its slots.
    pub(crate) fn millis(&self) -> u64 {
        u64::from(WIDTHS[self.width])
    }

    fn slot(&mut self, millis: u32) -> usize {
        let mut slot = (millis / WIDTHS[self.width]) as usize;
        while slot >= SLOTS && self.width + 1 < WIDTHS.len() {
            self.widen();
            slot = (millis / WIDTHS[self.width]) as usize;
        }
        if slot >= self.slots.len() {
            // What was held, under way or open at the end of the last slot was so in all that were passed over.
            let Level { held, in_flight, open } = self.level;
            let quiet = Bucket { held, in_flight, open, ..Bucket::default() };
            self.slots.resize(slot + 1, quiet);
        }
        slot
    }

    fn widen(&mut self) {
        let together = (WIDTHS[self.width + 1] / WIDTHS[self.width]) as usize;
        let merged = self.slots.chunks(together).map(|slots| {
            let mut bucket = Bucket::default();
            slots.iter().for_each(|slot| bucket.add(slot));
            bucket
        });
        let merged = merged.collect();
        let unmerged = std::mem::replace(&mut self.slots, merged);
        self.fine.get_or_insert(unmerged);
        self.width += 1;
    }
}

/// The narrowest bucket of which at most `most` cover `until`, and that these slots can be put together to.
pub(crate) fn bucket_width(until: u64, most: u64, slots: u64) -> Duration {
    let fits = |width: &&u32| u64::from(**width).is_multiple_of(slots) && until.div_ceil(u64::from(**width)) <= most;
    Duration::from_millis(u64::from(*NICE.iter().find(fits).unwrap_or(&NICE[NICE.len() - 1])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_is_a_multiple_of_the_one_before_and_can_become_a_nice_one() {
        assert!(WIDTHS.windows(2).all(|pair| pair[1].is_multiple_of(pair[0])));
        assert!(WIDTHS.iter().all(|width| NICE.contains(width)));
        assert!(SLOTS as u64 * u64::from(WIDTHS[WIDTHS.len() - 1]) > u64::from(u32::MAX), "there is room for any time");
    }

    #[test]
    fn slots_are_put_together_when_there_are_too_many_and_nothing_is_lost() {
        let mut timeline = Timeline::new();
        for second in 0..10_000 {
            timeline.at(second * 1_000).sends += 1;
        }
        assert_eq!(timeline.millis(), 1_000);
        assert_eq!(timeline.sent_by(50), 5_000_000);
        let (buckets, later) = timeline.buckets(60_000, 300_000);
        assert_eq!(buckets.iter().map(|bucket| bucket.sends).collect::<Vec<_>>(), [60; 5]);
        assert_eq!(later.sends, 9_700);
    }

    #[test]
    fn the_beginning_of_a_long_time_is_kept_in_fine_slots() {
        let mut timeline = Timeline::new();
        for tenth in 0..100_000 {
            timeline.at(tenth * 100).sends += 1;
            timeline.level(tenth * 100, Level { held: tenth + 1, in_flight: 0, open: 0 });
        }
        assert_eq!((timeline.millis(), timeline.finest(3_276_800), timeline.finest(3_276_801)), (1_000, 100, 1_000));
        for (width, until, each) in [(100, 5_000, 1), (1_000, 5_000, 10), (100_000, 5_000_000, 1_000)] {
            let (buckets, later) = timeline.buckets(width, until);
            let count = until / width;
            assert_eq!(buckets.iter().map(|bucket| bucket.sends).collect::<Vec<_>>(), vec![each; count as usize]);
            assert_eq!(u64::from(later.sends), 100_000 - count * u64::from(each));
            assert_eq!((buckets[0].held, later.held), (each, 100_000));
        }
    }

    #[test]
    fn a_level_lasts_until_it_changes() {
        let mut timeline = Timeline::new();
        timeline.level(150, Level { held: 7, in_flight: 2, open: 9 });
        timeline.level(420, Level { held: 3, in_flight: 2, open: 8 });
        timeline.level(480, Level { held: 0, in_flight: 0, open: 5 });
        timeline.at(650).sends += 1;
        let held: Vec<_> = timeline.slots.iter().map(|slot| slot.held).collect();
        assert_eq!(held, [0, 7, 7, 7, 7, 0, 0], "the most of each slot");
        let open: Vec<_> = timeline.slots.iter().map(|slot| slot.open).collect();
        assert_eq!(open, [0, 9, 9, 9, 9, 5, 5], "the most of each slot");
    }

    #[test]
    fn a_bucket_is_as_narrow_as_their_number_allows() {
        let width = |until, slots| bucket_width(until, 300, slots).as_millis();
        assert_eq!(width(1, 100), 100);
        assert_eq!(width(30_000, 100), 100);
        assert_eq!(width(30_001, 100), 200);
        assert_eq!(width(120_000, 100), 500);
        assert_eq!(width(120_000, 200), 1_000, "half a second is no multiple of these slots");
        assert_eq!(width(86_400_000, 10_000), 300_000);
        assert_eq!(width(u64::MAX, 100), 86_400_000);
    }
}
