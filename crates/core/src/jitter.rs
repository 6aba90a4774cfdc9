//! Jitter: how a wait is spread out, so that clients that failed together do not come back together.
//!
//! Full jitter is the default because it spreads a herd the furthest for the same total work. Proportional jitter is
//! for schedules that were promised to a receiver: it stays close to them.

use std::time::Duration;

use crate::backoff::Backoff;

/// How a wait is spread out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Jitter {
    /// A uniform draw between zero and the ceiling.
    Full,
    /// Half of the ceiling, and a uniform draw of the other half.
    Equal,
    /// Between the initial delay and three times the previous wait, never above the longest.
    Decorrelated,
    /// The ceiling, plus or minus this part of it.
    Proportional {
        /// Above 0, up to 1.
        ratio: f64,
    },
    /// No jitter: exactly the ceiling.
    None,
}

impl Jitter {
    /// The wait before retry `retry` (1 = the first), drawn with `unit` in [0, 1).
    pub fn draw(self, backoff: &Backoff, retry: u32, previous: Option<Duration>, unit: f64) -> Duration {
        let unit = clamp_unit(unit);
        let ceiling = backoff.ceiling(retry);
        match self {
            Jitter::Full => scale(ceiling, unit),
            Jitter::Equal => ceiling / 2 + scale(ceiling / 2, unit),
            Jitter::Decorrelated => decorrelated(backoff, previous, unit),
            Jitter::Proportional { ratio } => scale(ceiling, 1.0 - ratio + 2.0 * ratio * unit),
            Jitter::None => ceiling,
        }
    }
}

/// `min(longest, uniform(initial, previous * 3))`, where the first retry takes the initial delay for its previous wait.
///
/// The cap is put on the draw and not on the range, so the range is never empty. A previous wait shorter than a third
/// of the initial delay (the policy was changed in between) counts as that third.
fn decorrelated(backoff: &Backoff, previous: Option<Duration>, unit: f64) -> Duration {
    let initial = backoff.ceiling(1);
    let upper = previous.unwrap_or(initial).saturating_mul(3).max(initial);
    initial.saturating_add(scale(upper - initial, unit)).min(backoff.longest())
}

/// The draw, forced into [0, 1).
///
/// NaN counts as the longest draw: a broken source of randomness must not cause a storm of retries.
fn clamp_unit(unit: f64) -> f64 {
    const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;
    if unit.is_nan() { BELOW_ONE } else { unit.clamp(0.0, BELOW_ONE) }
}

/// `duration * factor` to the nearest nanosecond; `duration` itself if that overflows.
fn scale(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(duration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Limits;

    const SECOND: Duration = Duration::from_secs(1);
    const DOUBLING: Backoff = Backoff::Exponential { initial: SECOND, multiplier: 2.0, max: Duration::from_secs(30) };

    #[test]
    fn each_jitter_draws_from_its_own_range() {
        let ratio = 0.2;
        // The ceiling of retry 4 is 8 s. Jitter, unit, expected ms.
        let cases = [
            (Jitter::Full, [(0.0, 0), (0.25, 2_000), (0.5, 4_000), (0.75, 6_000)]),
            (Jitter::Equal, [(0.0, 4_000), (0.25, 5_000), (0.5, 6_000), (0.75, 7_000)]),
            (Jitter::Proportional { ratio }, [(0.0, 6_400), (0.25, 7_200), (0.5, 8_000), (0.75, 8_800)]),
            (Jitter::Proportional { ratio: 1.0 }, [(0.0, 0), (0.25, 4_000), (0.5, 8_000), (0.75, 12_000)]),
            (Jitter::None, [(0.0, 8_000), (0.25, 8_000), (0.5, 8_000), (0.75, 8_000)]),
        ];
        for (jitter, rows) in cases {
            for (unit, expected) in rows {
                let drawn = jitter.draw(&DOUBLING, 4, None, unit);
                assert_eq!(drawn, Duration::from_millis(expected), "{jitter:?}, unit {unit}");
            }
        }
    }

    #[test]
    fn decorrelated_jitter_draws_between_the_initial_delay_and_three_times_the_previous_wait() {
        // previous ms, unit, expected ms
        let cases = [
            (None, 0.0, 1_000),
            (None, 0.5, 2_000),
            (Some(1_000), 0.5, 2_000),
            (Some(4_000), 0.0, 1_000),
            (Some(4_000), 0.5, 6_500),
            // What is drawn above the longest is the longest; the range itself is not narrowed.
            (Some(20_000), 0.25, 15_750),
            (Some(20_000), 0.5, 30_000),
            (Some(u64::MAX), 0.5, 30_000),
            // A previous wait that leaves no range leaves the initial delay.
            (Some(100), 0.5, 1_000),
            (Some(0), 0.5, 1_000),
        ];
        for (previous, unit, expected) in cases {
            let drawn = Jitter::Decorrelated.draw(&DOUBLING, 9, previous.map(Duration::from_millis), unit);
            assert_eq!(drawn, Duration::from_millis(expected), "previous {previous:?}, unit {unit}");
        }
    }

    #[test]
    fn a_unit_out_of_range_counts_as_the_nearest_draw_and_no_number_as_the_longest() {
        let lowest = Duration::ZERO;
        let highest = Jitter::Full.draw(&DOUBLING, 1, None, 1.0 - f64::EPSILON / 2.0);
        let cases = [
            (-0.1, lowest),
            (f64::NEG_INFINITY, lowest),
            (1.0, highest),
            (7.0, highest),
            (f64::INFINITY, highest),
            (f64::NAN, highest),
        ];
        for (unit, expected) in cases {
            assert_eq!(Jitter::Full.draw(&DOUBLING, 1, None, unit), expected, "unit {unit}");
        }
        assert_eq!(Jitter::Proportional { ratio: 0.5 }.draw(&DOUBLING, 1, None, f64::NAN), SECOND * 3 / 2);
    }

    #[test]
    fn a_ratio_that_no_policy_can_have_is_harmless_too() {
        for ratio in [f64::NAN, f64::INFINITY] {
            assert_eq!(Jitter::Proportional { ratio }.draw(&DOUBLING, 1, None, 0.25), SECOND, "ratio {ratio}");
        }
    }

    /// A draw's bounds: zero or the initial delay below, the longest ceiling (times 1 + ratio) above.
    fn bounds(jitter: Jitter, backoff: &Backoff, retry: u32) -> (Duration, Duration) {
        let ceiling = backoff.ceiling(retry);
        match jitter {
            Jitter::Full => (Duration::ZERO, ceiling),
            Jitter::Equal => (ceiling / 2, ceiling),
            Jitter::Decorrelated => (backoff.ceiling(1), backoff.longest()),
            Jitter::Proportional { ratio } => (ceiling.mul_f64(1.0 - ratio), ceiling.mul_f64(1.0 + ratio)),
            Jitter::None => (ceiling, ceiling),
        }
    }

    #[test]
    fn no_setting_draws_out_of_bounds_and_no_ceiling_shrinks() {
        let mut draws = 0;
        for backoff in every_backoff() {
            for jitter in every_jitter() {
                let (mut previous, mut lower_ceiling, mut units) = (None, Duration::ZERO, Units(42));
                for retry in (1..=100).chain([1_023, 1_024, 1_025, i32::MAX as u32, u32::MAX - 1, u32::MAX]) {
                    let case = format!("{backoff:?}, {jitter:?}, retry {retry}, previous {previous:?}");
                    let ceiling = backoff.ceiling(retry);
                    assert!(ceiling >= lower_ceiling && ceiling <= backoff.longest() && !ceiling.is_zero(), "{case}");
                    let (least, most) = bounds(jitter, &backoff, retry);
                    for unit in [0.0, units.next(), 1.0 - f64::EPSILON / 2.0, 1.0, -1.0, f64::NAN] {
                        let drawn = jitter.draw(&backoff, retry, previous, unit);
                        assert!(least <= drawn && drawn <= most, "{case}, unit {unit}: {drawn:?}");
                        draws += 1;
                    }
                    previous = Some(jitter.draw(&backoff, retry, previous, units.next()));
                    lower_ceiling = ceiling;
                }
            }
        }
        assert_eq!(draws, (4 * 4 * 4 + 4 * 4 + 4 + 1) * 7 * 106 * 6);
    }

    fn every_backoff() -> Vec<Backoff> {
        let (shortest, month) = (*Limits::DELAY.start(), *Limits::DELAY.end());
        let delays = [shortest, Duration::from_millis(333), Duration::from_secs(30), month];
        let mut all = vec![Backoff::Schedule { delays: delays.to_vec() }];
        for initial in delays {
            all.push(Backoff::Fixed { delay: initial });
            for max in delays.map(|max| max.max(initial)) {
                all.push(Backoff::Linear { initial, max });
                for multiplier in [1.0, 1.000_000_1, 2.0, 100.0] {
                    all.push(Backoff::Exponential { initial, multiplier, max });
                }
            }
        }
        all
    }

    fn every_jitter() -> [Jitter; 7] {
        let proportional = |ratio| Jitter::Proportional { ratio };
        [
            Jitter::Full,
            Jitter::Equal,
            Jitter::Decorrelated,
            proportional(f64::MIN_POSITIVE),
            proportional(0.2),
            proportional(1.0),
            Jitter::None,
        ]
    }

    /// Draws in [0, 1) that are the same in every run.
    struct Units(u64);

    impl Units {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }
    }
}
