//! Which hashes are certainly not in the table.
//!
//! Nearly every key is new, and to find that out from the table would cost a page read each. A Bloom filter says it
//! from memory, and is wrong in one direction only: what it lets through is looked up in the table. Each hash sets its
//! bits within one cache line, so a question costs one step through memory.

use super::KeyHash;

/// At this many bits for each hash, about one in seventy that is not there is let through.
const BITS_PER_HASH: usize = 10;

/// Bits that a hash sets.
const BITS_SET: u32 = 6;

/// One cache line.
type Block = [u64; 8];
const BLOCK_BITS: usize = 512;

/// Room for as many hashes, however few there are.
const LEAST_HASHES: usize = 1 << 20;

/// No more memory than this (64 MiB, for some fifty million hashes): beyond it, more is let through.
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

    /// `false` is certain.
    pub(super) fn may_contain(&self, hash: KeyHash) -> bool {
        let block = &self.blocks[self.block_of(hash)];
        bits_of(hash).all(|bit| block[bit / 64] & (1 << (bit % 64)) != 0)
    }

    /// Whether it holds more than it has room for, and a larger one would do better.
    pub(super) fn is_crowded(&self) -> bool {
        self.blocks.len() < MOST_BLOCKS && self.hashes * BITS_PER_HASH > self.blocks.len() * BLOCK_BITS
    }

    fn block_of(&self, hash: KeyHash) -> usize {
        // The hash as a fraction of all hashes, times the number of blocks.
        ((u128::from(hash.0.cast_unsigned()) * self.blocks.len() as u128) >> 64) as usize
    }
}

/// Positions within a block, from bits that did not choose the block.
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
