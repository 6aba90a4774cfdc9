//! Durations as text: `500ms`, `30s`, `15m`, `24h`, `7d`, `1h30m`.

use std::time::Duration;

/// The units, largest first, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads a duration; the error names the accepted form.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    parse(text).map(Duration::from_millis).ok_or_else(|| "must be a duration such as 500ms, 30s, 15m, 24h or 7d".into())
}

fn parse(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(*millis)?)?;
        rest = after;
    }
    Some(total)
}

/// Writes a duration in the largest unit that holds it without a remainder; [`parse_duration`] reads it back.
pub fn duration_text(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    UNITS
        .iter()
        .find(|(_, unit)| millis > 0 && millis.is_multiple_of(*unit))
        .map_or_else(|| "0s".into(), |(name, unit)| format!("{}{name}", millis / unit))
}

/// A duration rounded for people: `8ms`, `1.2s`, `46s`, `3m 20s`, `5h 10m`, `2d 3h`. One in the middle is rounded down.
pub fn brief(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    // Rounded first: what rounds up to the next unit is shown in it.
    let rounded = |unit: u64| millis.saturating_add((unit - 1) / 2) / unit;
    let (tenths, seconds, minutes, hours) = (rounded(100), rounded(1_000), rounded(60_000), rounded(3_600_000));
    match millis {
        0..1_000 => format!("{millis}ms"),
        _ if tenths < 100 && tenths % 10 != 0 => format!("{}.{}s", tenths / 10, tenths % 10),
        _ if seconds < 60 => format!("{seconds}s"),
        _ if seconds < 3_600 => two(seconds / 60, "m", seconds % 60, "s"),
        _ if minutes < 1_440 => two(minutes / 60, "h", minutes % 60, "m"),
        _ => two(hours / 24, "d", hours % 24, "h"),
    }
}

/// A duration rounded to its largest unit, for people: `8ms`, `46s`, `3m`, `5h`, `2d`. One in the middle is rounded down.
pub fn coarse(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let rounded = |unit: u64| millis.saturating_add((unit - 1) / 2) / unit;
    let (seconds, minutes, hours) = (rounded(1_000), rounded(60_000), rounded(3_600_000));
    match millis {
        0..1_000 => format!("{millis}ms"),
        _ if seconds < 60 => format!("{seconds}s"),
        _ if minutes < 60 => format!("{minutes}m"),
        _ if hours < 48 => format!("{hours}h"),
        _ => format!("{}d", rounded(86_400_000)),
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 { format!("{large}{large_unit}") } else { format!("{large}{large_unit} {small}{small_unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        for (text, millis) in [
            ("0s", 0),
            ("500ms", 500),
            ("30s", 30_000),
            ("15m", 900_000),
            ("24h", 86_400_000),
            ("7d", 604_800_000),
            ("1h30m", 5_400_000),
            (" 2s ", 2_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "5", "s", "5 s", "-5s", "1.5s", "5sec", "5S", "99999999999999999999s", "999999999999999999d"] {
            assert!(parse_duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_written_duration_reads_back_the_same() {
        for millis in [0, 1, 999, 1_000, 1_500, 90_000, 3_600_000, 86_400_000, 604_800_000] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse_duration(&duration_text(duration)), Ok(duration));
        }
        assert_eq!(duration_text(Duration::from_secs(90)), "90s");
        assert_eq!(duration_text(Duration::from_secs(7 * 86_400)), "7d");
    }

    #[test]
    fn a_duration_has_two_units_at_most() {
        for (millis, expected) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_250, "1.2s"),
            (2_050, "2s"),
            (1_960, "2s"),
            (9_960, "10s"),
            (15_500, "15s"),
            (45_900, "46s"),
            (59_700, "1m"),
            (200_000, "3m 20s"),
            (3_599_900, "1h"),
            (86_390_000, "1d"),
            (120_000, "2m"),
            (18_600_000, "5h 10m"),
            (183_600_000, "2d 3h"),
        ] {
            assert_eq!(brief(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn a_coarse_duration_is_rounded_to_its_largest_unit() {
        for (millis, expected) in [
            (0, "0ms"),
            (1_500, "1s"),
            (1_980, "2s"),
            (59_600, "1m"),
            (179_000, "3m"),
            (3_590_000, "1h"),
            (40 * 3_600_000, "40h"),
            (47 * 3_600_000 + 3_000_000, "2d"),
            (u64::MAX, "213503982334d"),
        ] {
            assert_eq!(coarse(Duration::from_millis(millis)), expected);
        }
    }
}
