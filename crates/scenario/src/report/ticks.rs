//! Which values are written at an axis: the ones that people count in.

use std::time::Duration;

/// 0 and every step up to the first one that is not below `most`; steps are 1, 2 or 5 times a power of ten, and there
/// are at most `steps` of them. Counts have no halves: no step is below 1.
pub(super) fn counts(most: f64, steps: u32) -> Vec<f64> {
    let most = if most.is_finite() { most.max(1.0) } else { 1.0 };
    let mut step = 1.0;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle().take(60) {
        if most / step <= f64::from(steps.max(1)) {
            break;
        }
        step *= factor;
    }
    let last = (most / step).ceil() as u32;
    (0..=last).map(|tick| f64::from(tick) * step).collect()
}

/// The steps of a clock, in milliseconds.
const CLOCK: [u64; 34] = [
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    900_000,
    1_800_000,
    3_600_000,
    7_200_000,
    10_800_000,
    21_600_000,
    43_200_000,
    86_400_000,
    172_800_000,
    432_000_000,
    864_000_000,
    1_728_000_000,
    4_320_000_000,
    8_640_000_000,
    17_280_000_000,
];

/// Every step of a clock from 0 to `span`, at most `steps` of them.
pub(super) fn clock(span: Duration, steps: u32) -> Vec<Duration> {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let step = CLOCK.into_iter().find(|step| millis / step <= u64::from(steps.max(1)));
    let step = step.unwrap_or_else(|| millis.div_ceil(u64::from(steps.max(1))));
    (0..=millis / step).map(|tick| Duration::from_millis(tick * step)).collect()
}

/// What is written at a logarithmic axis of times, in milliseconds, from coarse to fine.
const ROUND: [&[u64]; 3] = [
    &[1, 100, 10_000, 600_000, 43_200_000],
    &[1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 43_200_000, 604_800_000],
    &[
        1,
        2,
        5,
        10,
        20,
        50,
        100,
        200,
        500,
        1_000,
        2_000,
        5_000,
        10_000,
        30_000,
        60_000,
        120_000,
        300_000,
        600_000,
        1_800_000,
        3_600_000,
        7_200_000,
        21_600_000,
        43_200_000,
        86_400_000,
        172_800_000,
        604_800_000,
        1_209_600_000,
    ],
];

/// Round times around `least` to `most` for a logarithmic axis: the last one not above `least`, the first one not below
/// `most`, and as many between them as `ticks` allows.
pub(super) fn round_times(least: Duration, most: Duration, ticks: usize) -> Vec<Duration> {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let finest = ROUND[ROUND.len() - 1];
    let last = finest[finest.len() - 1];
    let (least, most) = (millis(least).clamp(1, last), millis(most).clamp(1, last));
    let from = finest.iter().rev().find(|tick| **tick <= least).copied().unwrap_or(1);
    let to = finest.iter().find(|tick| **tick >= most && **tick > from).copied().unwrap_or(last);
    let ends = if from < to { [from, to] } else { [from / 2, to] };
    let with_ends = |between: &[u64]| {
        let inner = between.iter().copied().filter(|tick| (ends[0] + 1..ends[1]).contains(tick));
        std::iter::once(ends[0]).chain(inner).chain([ends[1]]).collect::<Vec<_>>()
    };
    let all = ROUND.iter().map(|between| with_ends(between));
    let chosen = all.filter(|chosen| chosen.len() <= ticks).max_by_key(Vec::len).unwrap_or_else(|| ends.to_vec());
    chosen.into_iter().map(Duration::from_millis).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_in_ones_twos_and_fives() {
        let cases: [(f64, u32, &[f64]); 8] = [
            (0.0, 5, &[0.0, 1.0]),
            (3.0, 5, &[0.0, 1.0, 2.0, 3.0]),
            (6.0, 5, &[0.0, 2.0, 4.0, 6.0]),
            (501.0, 5, &[0.0, 200.0, 400.0, 600.0]),
            (9_300.0, 5, &[0.0, 2_000.0, 4_000.0, 6_000.0, 8_000.0, 10_000.0]),
            (20_000.0, 4, &[0.0, 5_000.0, 10_000.0, 15_000.0, 20_000.0]),
            (f64::NAN, 4, &[0.0, 1.0]),
            (1e9, 1, &[0.0, 1e9]),
        ];
        for (most, steps, expected) in cases {
            assert_eq!(counts(most, steps), expected, "{most} in {steps}");
        }
    }

    #[test]
    fn times_go_in_the_steps_of_a_clock() {
        let cases: [(u64, u32, &[u64]); 6] = [
            (0, 6, &[0]),
            (100, 5, &[0, 20, 40, 60, 80, 100]),
            (64_000, 5, &[0, 20_000, 40_000, 60_000]),
            (150_000, 6, &[0, 30_000, 60_000, 90_000, 120_000, 150_000]),
            (600_000, 6, &[0, 120_000, 240_000, 360_000, 480_000, 600_000]),
            (604_800_000, 4, &[0, 172_800_000, 345_600_000, 518_400_000]),
        ];
        for (span, steps, expected) in cases {
            let ticks: Vec<_> =
                clock(Duration::from_millis(span), steps).into_iter().map(|tick| tick.as_millis() as u64).collect();
            assert_eq!(ticks, expected, "{span} in {steps}");
        }
        assert!(clock(Duration::MAX, 6).len() <= 7);
    }

    #[test]
    fn a_logarithmic_axis_of_times_has_round_ends() {
        let cases: [(u64, u64, usize, &[u64]); 6] = [
            (13, 63_000, 8, &[10, 100, 1_000, 10_000, 60_000, 120_000]),
            (13, 63_000, 4, &[10, 100, 10_000, 120_000]),
            (13, 63_000, 2, &[10, 120_000]),
            (40, 700, 8, &[20, 50, 100, 200, 500, 1_000]),
            (0, 0, 8, &[1, 2]),
            (100, 100, 8, &[100, 200]),
        ];
        for (least, most, ticks, expected) in cases {
            let times = round_times(Duration::from_millis(least), Duration::from_millis(most), ticks);
            let times: Vec<_> = times.into_iter().map(|time| time.as_millis() as u64).collect();
            assert_eq!(times, expected, "{least} to {most} in {ticks}");
        }
        assert!(round_times(Duration::MAX, Duration::MAX, 8).len() >= 2);
    }
}
