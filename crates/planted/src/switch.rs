//! The switch: which bug is on. Only the copy of the tree with the bugs reads it.

use std::cell::Cell;

use crate::Bug;

thread_local! {
    static PLANTED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Whether the bug with this number is switched on, on this thread.
pub fn is(number: usize) -> bool {
    PLANTED.get() == Some(number)
}

/// Switches a bug on, on this thread, for as long as the returned value is kept.
pub fn plant(bug: &Bug) -> Planted {
    Planted { before: PLANTED.replace(Some(bug.number)) }
}

/// A bug that is switched on; dropping this switches it off again.
#[derive(Debug)]
pub struct Planted {
    before: Option<usize>,
}

impl Drop for Planted {
    fn drop(&mut self) {
        PLANTED.set(self.before);
    }
}
