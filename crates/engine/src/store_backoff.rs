//! The wait between calls of a store that fails.

use std::time::Duration;

use redrive_core::backoff::Backoff;
use redrive_core::jitter::Jitter;

/// The first wait, approximately; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(200);
/// The longest wait, approximately.
const LONGEST: Duration = Duration::from_secs(5);

/// The wait after the `times`th failure in a row, counted from zero. It has jitter: thousands of attempts may wait for
/// the store to recover, and they must not all call it at one moment.
pub(crate) fn wait(times: u32, unit: f64) -> Duration {
    let backoff = Backoff::Exponential { initial: FIRST, multiplier: 2.0, max: LONGEST };
    Jitter::Equal.draw(&backoff, times.saturating_add(1), None, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_are_spread() {
        for (times, least, most) in
            [(0, 100, 200), (1, 200, 400), (4, 1_600, 3_200), (5, 2_500, 5_000), (99, 2_500, 5_000)]
        {
            let (shortest, longest) = (wait(times, 0.0).as_millis(), wait(times, 0.999_999).as_millis());
            assert!(shortest == least && (most - 1..=most).contains(&longest), "{times}: {shortest} to {longest} ms");
        }
    }
}
