//! How deep and how large a tree may be, so that no file, aliases included, takes more than it should.

use std::ops::Range;

use super::Wrong;

/// How deep values may lie in each other.
pub const MAX_DEPTH: usize = 64;

/// How many values a document may have, each use of an alias counted in full.
pub const MAX_VALUES: usize = 100_000;

/// How many bytes of text a document may have, keys included, each use of an alias counted in full.
pub const MAX_TEXT: usize = 8 * 1024 * 1024;

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Room {
    taken: usize,
    text: usize,
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

    /// Takes room for `bytes` more of text at `span`. Where there are no aliases the size of the file bounds it already.
    pub(super) fn take_text(&mut self, bytes: usize, span: &Range<usize>) -> Result<(), Wrong> {
        self.text = self.text.saturating_add(bytes);
        if self.text > MAX_TEXT {
            let most = MAX_TEXT >> 20;
            return Err((span.clone(), format!("the document has more than {most} MiB of text; here it is too much")));
        }
        Ok(())
    }
}
