//! How many rows are handed over at once.

/// As many as were asked for, fewer after a server (or a proxy before it) found a batch too large.
///
/// Halved then, and one more after each batch that was taken: a limit is met again now and then, not with every batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchSize {
    now: usize,
    most: usize,
}

impl BatchSize {
    pub(super) fn new(most: usize) -> Self {
        BatchSize { now: most, most }
    }

    pub(super) fn now(self) -> usize {
        self.now
    }

    /// A batch of `rows` was too large.
    pub(super) fn too_large(&mut self, rows: usize) {
        self.now = (rows / 2).max(1);
    }

    /// A batch was taken.
    pub(super) fn taken(&mut self) {
        self.now = (self.now + 1).min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_is_too_large_is_halved_and_grows_again() {
        let mut size = BatchSize::new(100);
        for (rows, expected) in [(100, 50), (7, 3), (3, 1), (1, 1)] {
            size.too_large(rows);
            assert_eq!(size.now(), expected);
        }
        (0..200).for_each(|_| size.taken());
        assert_eq!(size.now(), 100);
    }
}
