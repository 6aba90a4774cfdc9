//! Backoff: the wait before a retry.
//!
//! Retries are counted from 1: retry r comes before attempt r + 1. Each has a *ceiling*, which only the retry's number
//! decides; jitter then draws the actual wait. No setting and no retry number overflows, turns negative or becomes
//! zero by rounding.
//!
//! Not here: whether there is a retry at all, and what a Retry-After changes (`decide`).

use std::time::Duration;

use crate::policy::Policy;

/// How the ceiling grows from retry to retry.
#[derive(Debug, Clone, PartialEq)]
pub enum Backoff {
    /// Grows by a factor each time: `initial * multiplier^(retry - 1)`, never above `max`.
    Exponential {
        /// The first retry's ceiling.
        initial: Duration,
        /// The factor, at least 1.
        multiplier: f64,
        /// The longest ceiling.
        max: Duration,
    },
    /// Grows by the initial delay each time: `initial * retry`, never above `max`.
    Linear {
        /// The first retry's ceiling.
        initial: Duration,
        /// The longest ceiling.
        max: Duration,
    },
    /// Constant.
    Fixed {
        /// Every retry's ceiling.
        delay: Duration,
    },
    /// From a list, as is usual for webhooks.
    Schedule {
        /// The ceilings of retries 1, 2, …; the last one repeats.
        delays: Vec<Duration>,
    },
}

impl Backoff {
    /// The longest wait before retry `retry` (1 = the first), before jitter.
    pub fn ceiling(&self, retry: u32) -> Duration {
        let retry = retry.max(1);
        match self {
            Backoff::Exponential { initial, multiplier, max } => grown(*initial, *multiplier, retry - 1).min(*max),
            Backoff::Linear { initial, max } => initial.saturating_mul(retry).min(*max),
            Backoff::Fixed { delay } => *delay,
            Backoff::Schedule { delays } => {
                let at = usize::try_from(retry - 1).unwrap_or(usize::MAX);
                delays.get(at).or(delays.last()).copied().unwrap_or_default()
            }
        }
    }

    /// The longest ceiling that any retry can have.
    pub fn longest(&self) -> Duration {
        match self {
            Backoff::Exponential { max, .. } | Backoff::Linear { max, .. } => *max,
            Backoff::Fixed { delay } => *delay,
            Backoff::Schedule { delays } => delays.iter().max().copied().unwrap_or_default(),
        }
    }
}

/// The wait before retry `retry` (1 = the first), drawn with `unit` in [0, 1).
///
/// `previous` is the wait that was drawn before the attempt that just ended; only decorrelated jitter builds on it.
pub fn delay(policy: &Policy, retry: u32, previous: Option<Duration>, unit: f64) -> Duration {
    policy.jitter.draw(&policy.backoff, retry, previous, unit)
}

/// `initial * multiplier^times`, or the longest possible duration if that overflows.
///
/// The power is taken in floating point, because an integer power overflows long before the last retry. It is limited
/// to finite numbers, so that zero times infinity does not become NaN.
fn grown(initial: Duration, multiplier: f64, times: u32) -> Duration {
    let factor = multiplier.max(1.0).powf(f64::from(times)).min(f64::MAX);
    Duration::try_from_secs_f64(initial.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jitter::Jitter;
    use crate::policy::Limits;

    const MS: Duration = Duration::from_millis(1);
    const SECOND: Duration = Duration::from_secs(1);
    const LAST: u32 = u32::MAX;

    fn exponential(initial: Duration, multiplier: f64, max: Duration) -> Backoff {
        Backoff::Exponential { initial, multiplier, max }
    }

    #[test]
    fn an_exponential_ceiling_grows_by_its_factor_up_to_the_longest() {
        let month = *Limits::DELAY.end();
        let cases = [
            (exponential(SECOND, 2.0, 30 * SECOND), vec![(1, 1_000), (2, 2_000), (3, 4_000), (5, 16_000), (6, 30_000)]),
            (exponential(SECOND, 2.0, 30 * SECOND), vec![(40, 30_000), (1_100, 30_000), (LAST, 30_000)]),
            (exponential(100 * MS, 1.5, 30 * SECOND), vec![(1, 100), (2, 150), (3, 225), (20, 30_000)]),
            (exponential(MS, 1.0, SECOND), vec![(1, 1), (2, 1), (LAST, 1)]),
            (exponential(MS, 100.0, month), vec![(1, 1), (2, 100), (5, 100_000_000), (6, 2_592_000_000)]),
            (exponential(month, 100.0, month), vec![(1, 2_592_000_000), (LAST, 2_592_000_000)]),
            (exponential(SECOND, 10.0, SECOND), vec![(1, 1_000), (2, 1_000)]),
        ];
        for (backoff, rows) in cases {
            for (retry, expected) in rows {
                assert_eq!(backoff.ceiling(retry).as_millis(), expected, "{backoff:?}, retry {retry}");
            }
        }
    }

    #[test]
    fn a_fraction_of_a_millisecond_is_kept() {
        let backoff = exponential(MS, 1.1, SECOND);
        assert_eq!(backoff.ceiling(2), Duration::from_micros(1_100));
        assert_eq!(backoff.ceiling(3), Duration::from_micros(1_210));
    }

    #[test]
    fn a_linear_ceiling_grows_by_the_initial_delay_up_to_the_longest() {
        let backoff = Backoff::Linear { initial: 2 * SECOND, max: 7 * SECOND };
        for (retry, expected) in [(1, 2), (2, 4), (3, 6), (4, 7), (LAST, 7)] {
            assert_eq!(backoff.ceiling(retry).as_secs(), expected, "retry {retry}");
        }
        let endless = Backoff::Linear { initial: Duration::MAX, max: Duration::MAX };
        assert_eq!(endless.ceiling(LAST), Duration::MAX);
    }

    #[test]
    fn a_fixed_ceiling_stays() {
        let backoff = Backoff::Fixed { delay: 3 * SECOND };
        for retry in [1, 2, 77, LAST] {
            assert_eq!(backoff.ceiling(retry), 3 * SECOND, "retry {retry}");
        }
    }

    #[test]
    fn a_schedule_is_followed_and_its_last_delay_repeats() {
        let delays = [1, 5, 30, 120, 900, 3_600, 14_400].map(Duration::from_secs).to_vec();
        let backoff = Backoff::Schedule { delays };
        for (retry, expected) in [(1, 1), (2, 5), (3, 30), (6, 3_600), (7, 14_400), (8, 14_400), (LAST, 14_400)] {
            assert_eq!(backoff.ceiling(retry).as_secs(), expected, "retry {retry}");
        }
        assert_eq!(Backoff::Schedule { delays: Vec::new() }.ceiling(1), Duration::ZERO);
    }

    #[test]
    fn the_longest_ceiling_of_a_schedule_need_not_be_its_last() {
        let backoff = Backoff::Schedule { delays: vec![SECOND, 9 * SECOND, 2 * SECOND] };
        assert_eq!(backoff.longest(), 9 * SECOND);
        assert_eq!(exponential(SECOND, 2.0, 30 * SECOND).longest(), 30 * SECOND);
        assert_eq!(Backoff::Linear { initial: SECOND, max: 5 * SECOND }.longest(), 5 * SECOND);
        assert_eq!(Backoff::Fixed { delay: SECOND }.longest(), SECOND);
    }

    #[test]
    fn retry_zero_counts_as_the_first() {
        let backoff = exponential(SECOND, 2.0, 30 * SECOND);
        assert_eq!(backoff.ceiling(0), backoff.ceiling(1));
    }

    #[test]
    fn settings_that_no_policy_can_have_are_harmless_too() {
        for multiplier in [f64::NAN, f64::NEG_INFINITY, -2.0, 0.0, 0.5] {
            let backoff = exponential(SECOND, multiplier, 30 * SECOND);
            assert_eq!(backoff.ceiling(9), SECOND, "multiplier {multiplier}");
        }
        for multiplier in [f64::INFINITY, f64::MAX] {
            let backoff = exponential(SECOND, multiplier, 30 * SECOND);
            assert_eq!(backoff.ceiling(9), 30 * SECOND, "multiplier {multiplier}");
            assert_eq!(exponential(Duration::ZERO, multiplier, SECOND).ceiling(9), Duration::ZERO);
        }
        assert_eq!(exponential(Duration::MAX, 2.0, Duration::MAX).ceiling(LAST), Duration::MAX);
    }

    #[test]
    fn the_default_delay_is_a_draw_below_a_doubling_ceiling() {
        let policy = Policy::default();
        // retry, unit, expected ms
        for (retry, unit, expected) in [(1, 0.0, 0), (1, 0.5, 500), (3, 0.5, 2_000), (40, 0.5, 15_000)] {
            let drawn = delay(&policy, retry, None, unit);
            assert_eq!(drawn.as_millis(), expected, "retry {retry}, unit {unit}");
        }
    }

    #[test]
    fn only_decorrelated_jitter_looks_at_the_previous_wait() {
        let previous = Some(5 * SECOND);
        let mut policy = Policy::default();
        for jitter in [Jitter::Full, Jitter::Equal, Jitter::Proportional { ratio: 0.2 }, Jitter::None] {
            policy.jitter = jitter;
            assert_eq!(delay(&policy, 2, previous, 0.5), delay(&policy, 2, None, 0.5), "{jitter:?}");
        }
        policy.jitter = Jitter::Decorrelated;
        assert_eq!(delay(&policy, 2, previous, 0.5), 8 * SECOND);
        assert_eq!(delay(&policy, 2, None, 0.5), 2 * SECOND);
    }
}
