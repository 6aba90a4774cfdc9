//! Bounds the depth and size of a tree, also if aliases make it large.

use std::ops::Range;

use super::SyntaxError;

/// The deepest nesting of values.
pub const MAX_DEPTH: usize = 64;

/// How many values a document may have, each use of an alias counted in full.
pub const MAX_VALUES: usize = 100_000;

/// How many bytes of text a document may have, keys included, each use of an alias counted in full.
pub const MAX_TEXT: usize = 8 * 1024 * 1024;

/// Counts what was read so far.
#[derive(Debug, Default)]
pub(super) struct SizeLimit {
    taken: usize,
    text: usize,
}

impl SizeLimit {
    /// Counts `values` more at `span`, nested in `depth` others.
    pub(super) fn take(&mut self, values: usize, depth: usize, span: &Range<usize>) -> Result<(), SyntaxError> {
        self.taken = self.taken.saturating_add(values);
        if depth > MAX_DEPTH {
            return Err((span.clone(), format!("values are nested more than {MAX_DEPTH} deep here")));
        }
        if self.taken > MAX_VALUES {
            return Err((span.clone(), format!("the document has more than {MAX_VALUES} values, up to here")));
        }
        Ok(())
    }

    /// Counts `bytes` more of text at `span`. Where there are no aliases the size of the file bounds it already.
    pub(super) fn take_text(&mut self, bytes: usize, span: &Range<usize>) -> Result<(), SyntaxError> {
        self.text = self.text.saturating_add(bytes);
        if self.text > MAX_TEXT {
            let most = MAX_TEXT >> 20;
            return Err((span.clone(), format!("the document has more than {most} MiB of text, up to here")));
        }
        Ok(())
    }
}
