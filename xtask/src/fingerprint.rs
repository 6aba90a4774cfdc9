//! Hashes, to recognise bytes without keeping them.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A hash that is the same in every run: good enough to detect accidental changes of bytes.
pub fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
