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

/// A duration rounded for people: `8ms`, `1.2s`, `45s`, `3m 20s`, `5h 10m`, `2d 3h`.
pub fn brief(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    match millis {
        0..1_000 => format!("{millis}ms"),
        1_000..10_000 if millis % 1_000 >= 100 => format!("{}.{}s", millis / 1_000, millis % 1_000 / 100),
        1_000..60_000 => format!("{}s", millis / 1_000),
        60_000..3_600_000 => two(millis / 60_000, "m", millis % 60_000 / 1_000, "s"),
        3_600_000..86_400_000 => two(millis / 3_600_000, "h", millis % 3_600_000 / 60_000, "m"),
        _ => two(millis / 86_400_000, "d", millis % 86_400_000 / 3_600_000, "h"),
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
            (45_900, "45s"),
            (200_000, "3m 20s"),
            (120_000, "2m"),
            (18_600_000, "5h 10m"),
            (183_600_000, "2d 3h"),
        ] {
            assert_eq!(brief(Duration::from_millis(millis)), expected);
        }
    }
}
