//! How long to wait before trying again: by the same backoff and jitter as tasks are retried with.

use std::time::Duration;

use redrive_core::backoff::Backoff;
use redrive_core::jitter::Jitter;
use redrive_engine::entropy::Entropy;

use crate::serve::ThreadEntropy;

const BACKOFF: Backoff =
    Backoff::Exponential { initial: Duration::from_millis(500), multiplier: 2.0, max: Duration::from_secs(15) };
/// The longest that a server's Retry-After is heeded: it may be back earlier than it thought.
const LONGEST: Duration = Duration::from_secs(60);

/// The waits between tries that fail one after the other.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    failures: u32,
}

impl Pauses {
    /// The wait after one more failure, at least as long as the other side asked for.
    pub(super) fn next(&mut self, asked: Option<Duration>) -> Duration {
        self.failures = self.failures.saturating_add(1);
        // Half of it in any case: there is one relay for a table, and no herd to spread out.
        let drawn = Jitter::Equal.draw(&BACKOFF, self.failures, None, ThreadEntropy.unit());
        drawn.max(asked.unwrap_or_default().min(LONGEST))
    }

    /// It worked.
    pub(super) fn over(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_grows_with_the_failures_and_heeds_what_is_asked() {
        let mut pauses = Pauses::default();
        for ceiling_ms in [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000] {
            let ceiling = Duration::from_millis(ceiling_ms);
            let pause = pauses.next(None);
            assert!(pause >= ceiling / 2 && pause <= ceiling, "{pause:?} of {ceiling:?}");
        }
        assert_eq!(pauses.next(Some(Duration::from_secs(40))), Duration::from_secs(40));
        assert_eq!(pauses.next(Some(Duration::MAX)), LONGEST);
        pauses.over();
        assert!(pauses.next(Some(Duration::ZERO)) <= Duration::from_millis(500));
    }
}
