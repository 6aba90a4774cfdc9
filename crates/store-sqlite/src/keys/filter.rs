//! A Bloom filter for hashes that are certainly not in the table.
//!
//! Nearly every key is new, and a lookup in the table would cost a page read for each. The filter answers from memory,
//! and its only errors are false positives, which are then looked up in the table. Each hash sets its bits within one
//! cache line, so a query costs one memory access.

use super::KeyHash;

/// At this many bits for each hash, about one in seventy absent hashes is a false positive.
const BITS_PER_HASH: usize = 10;

/// The number of bits that a hash sets.
const BITS_SET: u32 = 6;

/// One cache line.
type Block = [u64; 8];
const BLOCK_BITS: usize = 512;

/// The smallest filter has room for this many hashes.
const LEAST_HASHES: usize = 1 << 20;

/// The largest filter (64 MiB, for some fifty million hashes): beyond that there are more false positives.
const MOST_BLOCKS: usize = 1 << 20;

pub(super) struct Filter {
    blocks: Vec<Block>,
    hashes: usize,
}

impl Filter {
    /// A filter with room for this many hashes.
    pub(super) fn for_about(hashes: usize) -> Self {
        let bits = hashes.max(LEAST_HASHES).saturating_mul(BITS_PER_HASH);
        let blocks = bits.div_ceil(BLOCK_BITS).min(MOST_BLOCKS);
        Filter { blocks: vec![[0; 8]; blocks], hashes: 0 }
    }

    pub(super) fn insert(&mut self, hash: KeyHash) {
        let at = self.block_of(hash);
        for bit in bits_of(hash) {
            self.blocks[at][bit / 64] |= 1 << (bit % 64);
        }
        self.hashes += 1;
    }

    /// Whether the hash may be in the table; `false` is certain.
    pub(super) fn may_contain(&self, hash: KeyHash) -> bool {
        let block = &self.blocks[self.block_of(hash)];
        bits_of(hash).all(|bit| block[bit / 64] & (1 << (bit % 64)) != 0)
    }

    /// Whether it holds more hashes than it has room for, so that a larger filter would be better.
    pub(super) fn is_crowded(&self) -> bool {
        self.blocks.len() < MOST_BLOCKS && self.hashes * BITS_PER_HASH > self.blocks.len() * BLOCK_BITS
    }

    fn block_of(&self, hash: KeyHash) -> usize {
        // The hash as a fraction of all hashes, times the number of blocks.
        ((u128::from(hash.0.cast_unsigned()) * self.blocks.len() as u128) >> 64) as usize
    }
}

/// Positions within a block, from bits that did not select the block.
fn bits_of(hash: KeyHash) -> impl Iterator<Item = usize> {
    let mixed = hash.0.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..BITS_SET).map(move |n| (mixed >> (1 + 9 * n)) as usize % BLOCK_BITS)
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter").field("blocks", &self.blocks.len()).field("hashes", &self.hashes).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: usize) -> KeyHash {
        KeyHash::of("acme", &n.to_string())
    }

    #[test]
    fn what_is_in_is_never_denied_and_what_is_not_is_rarely_let_through() {
        let mut filter = Filter::for_about(LEAST_HASHES);
        (0..LEAST_HASHES / 4).for_each(|n| filter.insert(hash(n)));
        assert!((0..LEAST_HASHES / 4).all(|n| filter.may_contain(hash(n))));
        let let_through = (0..10_000).filter(|n| filter.may_contain(hash(LEAST_HASHES + n))).count();
        assert!(let_through < 20, "{let_through} of 10000");
    }

    #[test]
    fn a_filter_says_when_it_is_crowded() {
        let mut filter = Filter::for_about(0);
        assert!(!filter.is_crowded());
        (0..=LEAST_HASHES as i64).for_each(|n| filter.insert(KeyHash(n << 40)));
        assert!(filter.is_crowded());
    }
}
