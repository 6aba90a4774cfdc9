//! Keys in memory, in rough order of their hashes.
//!
//! A bucket holds the few keys whose hashes share their first bits. A lookup needs two memory accesses where a balanced
//! tree of this size needs five, and iterating over the buckets still gives the order of the table on disk.

use super::{Entry, KeyHash};

/// How many keys a bucket holds at the expected number of keys.
const PER_BUCKET: usize = 8;

/// The limit for the number of buckets: more would use more memory while empty than they save.
const MOST_BITS: u32 = 16;

#[derive(Debug)]
pub(super) struct Buckets {
    buckets: Vec<Vec<Entry>>,
    /// How many of the first bits of a hash select its bucket.
    bits: u32,
    len: usize,
}

impl Buckets {
    /// Buckets for about this many keys; more keys only make it slower.
    pub(super) fn for_about(keys: usize) -> Self {
        let bits = (keys / PER_BUCKET).max(2).next_power_of_two().ilog2().min(MOST_BITS);
        Buckets { buckets: vec![Vec::new(); 1 << bits], bits, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn insert(&mut self, entry: Entry) {
        let at = self.bucket_of(entry.0);
        self.buckets[at].push(entry);
        self.len += 1;
    }

    /// Removes a key; returns whether it was present.
    pub(super) fn remove(&mut self, entry: Entry) -> bool {
        let at = self.bucket_of(entry.0);
        let bucket = &mut self.buckets[at];
        let Some(place) = bucket.iter().position(|kept| *kept == entry) else { return false };
        bucket.swap_remove(place);
        self.len -= 1;
        true
    }

    /// The rows with this hash.
    pub(super) fn rows(&self, hash: KeyHash) -> impl Iterator<Item = i64> {
        self.buckets[self.bucket_of(hash)].iter().filter(move |entry| entry.0 == hash).map(|entry| entry.1)
    }

    /// The keys of the bucket at this index, in order; `None` after the last bucket.
    pub(super) fn sorted(&self, place: usize) -> Option<Vec<Entry>> {
        let mut entries = self.buckets.get(place)?.clone();
        entries.sort_unstable();
        Some(entries)
    }

    /// The index of the bucket that a hash belongs to.
    pub(super) fn bucket_of(&self, hash: KeyHash) -> usize {
        (from_lowest(hash.0.cast_unsigned()) >> (u64::BITS - self.bits)) as usize
    }

    /// The lowest hash that belongs to the bucket at this index.
    pub(super) fn first_hash(&self, place: usize) -> KeyHash {
        KeyHash(from_lowest((place as u64) << (u64::BITS - self.bits)).cast_signed())
    }
}

/// Converts between a signed hash and its distance from the lowest one: hashes are ordered as signed numbers.
fn from_lowest(bits: u64) -> u64 {
    bits ^ (1 << 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_the_order_of_the_hashes() {
        for expected in [0, 1, 100, 10_000_000] {
            let mut buckets = Buckets::for_about(expected);
            let hashes = [i64::MIN, -5, -1, 0, 1, 5, 1 << 40, i64::MAX];
            hashes.iter().rev().for_each(|hash| buckets.insert((KeyHash(*hash), 7)));
            let walked: Vec<i64> =
                (0..).map_while(|place| buckets.sorted(place)).flatten().map(|(hash, _)| hash.0).collect();
            assert_eq!(walked, hashes, "for about {expected}");
            for place in [0, 1, (1 << buckets.bits) - 1] {
                assert_eq!(buckets.bucket_of(buckets.first_hash(place)), place, "for about {expected}");
            }
        }
    }

    #[test]
    fn two_tasks_may_share_a_hash() {
        let mut buckets = Buckets::for_about(10);
        buckets.insert((KeyHash(3), 1));
        buckets.insert((KeyHash(3), 2));
        assert_eq!(buckets.rows(KeyHash(3)).collect::<Vec<_>>(), [1, 2]);
        assert!(buckets.remove((KeyHash(3), 1)));
        assert!(!buckets.remove((KeyHash(3), 1)));
        assert_eq!(buckets.rows(KeyHash(3)).collect::<Vec<_>>(), [2]);
        assert_eq!(buckets.len(), 1);
    }
}
