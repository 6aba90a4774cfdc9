//! How numbers are written, everywhere on the page.

use std::time::Duration;

/// A count, in groups of three digits: `20,000`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count at an axis, where there is little room: `10k`.
pub(super) fn short(number: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.into_iter().find(|(unit, _)| number >= *unit) {
        Some((unit, name)) => {
            let number = number / unit;
            format!("{}{name}", trimmed(number, if number < 9.995 { 2 } else { 1 }))
        }
        None => trimmed(number, 2),
    }
}

/// Calls per second.
pub(super) fn rate(calls: u64) -> String {
    format!("{}/s", count(calls))
}

/// How many times something is something else, to three digits: `18.6×`.
pub(super) fn times(ratio: f64) -> String {
    match ratio {
        _ if !ratio.is_finite() => "–".to_owned(),
        _ if ratio < 9.995 => format!("{ratio:.2}×"),
        _ if ratio < 99.95 => format!("{ratio:.1}×"),
        _ => format!("{}×", count(ratio.round() as u64)),
    }
}

/// A mean, to about four digits.
pub(super) fn mean(value: f64) -> String {
    match value {
        _ if !value.is_finite() => "–".to_owned(),
        _ if value < 99.95 => trimmed(value, 1),
        _ => count(value.round() as u64),
    }
}

/// A part of a whole. What is not all is never written as 100 %, what is not nothing never as 0 %.
pub(super) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    let percent = 100.0 * part as f64 / whole as f64;
    match (part, percent) {
        (0, _) => "0\u{a0}%".to_owned(),
        _ if part == whole => "100\u{a0}%".to_owned(),
        (_, percent) if percent < 0.1 => "under 0.1\u{a0}%".to_owned(),
        (_, percent) if part < whole && percent > 99.9 => "over 99.9\u{a0}%".to_owned(),
        (_, percent) => format!("{}\u{a0}%", trimmed(percent, 1)),
    }
}

/// A time, in one unit or two: `340ms`, `3.42s`, `34.2s`, `3m12s`, `3h5m`, `2d4h`.
pub(super) fn duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    let two = |large: u64, unit: &str, small: u64, part: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{part}"),
    };
    // Rounded before it is split, so that no part becomes 60.
    let (seconds, minutes) = (millis.saturating_add(500) / 1_000, millis.saturating_add(30_000) / 60_000);
    match millis {
        0 => "0s".to_owned(),
        1..1_000 => format!("{millis}ms"),
        1_000..9_995 => format!("{}s", trimmed(millis as f64 / 1e3, 2)),
        9_995..59_950 => format!("{}s", trimmed(millis as f64 / 1e3, 1)),
        59_950..3_599_500 => two(seconds / 60, "m", seconds % 60, "s"),
        3_599_500..86_370_000 => two(minutes / 60, "h", minutes % 60, "m"),
        _ => {
            let hours = millis.saturating_add(1_800_000) / 3_600_000;
            two(hours / 24, "d", hours % 24, "h")
        }
    }
}

/// A place in a picture, to a tenth; what is no number is zero, so that no path breaks.
pub(super) fn place(value: f64) -> String {
    if value.is_finite() { trimmed(value, 1) } else { "0".to_owned() }
}

/// With at most so many decimals, and none that are zero.
fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        for (number, expected) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (20_000, "20,000"), (123_456_789, "123,456,789")]
        {
            assert_eq!(count(number), expected);
        }
    }

    #[test]
    fn an_axis_has_short_numbers() {
        for (number, expected) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (200.0, "200"),
            (1_000.0, "1k"),
            (2_500.0, "2.5k"),
            (10_000.0, "10k"),
            (10_325.0, "10.3k"),
            (2e6, "2M"),
            (5e9, "5G"),
        ] {
            assert_eq!(short(number), expected);
        }
    }

    #[test]
    fn ratios_have_three_digits() {
        for (ratio, expected) in [
            (0.0, "0.00×"),
            (1.0, "1.00×"),
            (9.994, "9.99×"),
            (9.996, "10.0×"),
            (18.64, "18.6×"),
            (1_234.4, "1,234×"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(times(ratio), expected);
        }
    }

    #[test]
    fn only_all_is_a_hundred_percent_and_only_nothing_is_zero() {
        for (part, whole, expected) in [
            (0, 0, "–"),
            (0, 7, "0\u{a0}%"),
            (7, 7, "100\u{a0}%"),
            (1, 100_000, "under 0.1\u{a0}%"),
            (99_999, 100_000, "over 99.9\u{a0}%"),
            (1, 2, "50\u{a0}%"),
            (2, 3, "66.7\u{a0}%"),
        ] {
            assert_eq!(percent(part, whole), expected, "{part} of {whole}");
        }
    }

    #[test]
    fn times_are_written_in_one_unit_or_two() {
        for (millis, expected) in [
            (0, "0s"),
            (1, "1ms"),
            (999, "999ms"),
            (1_000, "1s"),
            (3_420, "3.42s"),
            (9_994, "9.99s"),
            (9_996, "10s"),
            (34_240, "34.2s"),
            (59_960, "1m"),
            (90_000, "1m30s"),
            (3_599_600, "1h"),
            (11_100_000, "3h5m"),
            (86_399_000, "1d"),
            (187_200_000, "2d4h"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), expected, "{millis}");
        }
        assert_eq!(duration(Duration::from_micros(300)), "1ms", "not nothing");
        assert!(!duration(Duration::MAX).is_empty());
    }

    #[test]
    fn a_place_is_always_a_number() {
        for (value, expected) in
            [(1.0, "1"), (1.25, "1.2"), (-0.01, "0"), (f64::NAN, "0"), (f64::INFINITY, "0"), (1e3, "1000")]
        {
            assert_eq!(place(value), expected);
        }
    }
}
