//! How deep and how large a tree may be, so that no file, aliases included, takes more than it should.

use std::ops::Range;

use super::Wrong;

/// How deep values may lie in each other.
pub const MAX_DEPTH: usize = 64;

/// How many values a document may have, each use of an alias counted in full.
pub const MAX_VALUES: usize = 100_000;

/// The values that were read so far.
#[derive(Debug, Default)]
pub(super) struct Room {
    taken: usize,
}

impl Room {
    /// Takes room for `values` more at `span`, inside of `depth` others.
    pub(super) fn take(&mut self, values: usize, depth: usize, span: &Range<usize>) -> Result<(), Wrong> {
        self.taken = self.taken.saturating_add(values);
        if depth > MAX_DEPTH {
            return Err((span.clone(), format!("values lie more than {MAX_DEPTH} deep in each other here")));
        }
        if self.taken > MAX_VALUES {
            return Err((span.clone(), format!("the document has more than {MAX_VALUES} values; here it is too much")));
        }
        Ok(())
    }
}
