//! Moments and durations for people: how long ago, and the UTC time.

use std::time::{SystemTime, UNIX_EPOCH};

use redrive_core::{Date, Timestamp};
use time::OffsetDateTime;

/// The machine's time, in milliseconds since the epoch.
pub(crate) fn now_millis() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// The machine's day, in UTC.
pub(crate) fn today() -> Date {
    Date::of(Timestamp::from_millis(now_millis()))
}

/// A moment in both forms: `3m ago (2026-01-31 12:00:00Z)`.
pub(crate) fn moment(millis: u64, now: u64) -> String {
    format!("{} ({})", relative(millis, now), absolute(millis))
}

/// A moment seen from now: `3m ago`, `in 12s`.
pub(crate) fn relative(millis: u64, now: u64) -> String {
    if millis > now { format!("in {}", coarse(millis - now)) } else { format!("{} ago", coarse(now - millis)) }
}

fn absolute(millis: u64) -> String {
    let seconds = i64::try_from(millis / 1_000).unwrap_or(i64::MAX);
    match OffsetDateTime::from_unix_timestamp(seconds) {
        Ok(at) => format!(
            "{}-{:02}-{:02} {:02}:{:02}:{:02}Z",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute(),
            at.second()
        ),
        Err(_) => "after the year 9999".into(),
    }
}

/// One unit is enough to say how long ago something was.
fn coarse(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis}ms"),
        1_000..60_000 => format!("{}s", millis / 1_000),
        60_000..3_600_000 => format!("{}m", millis / 60_000),
        3_600_000..172_800_000 => format!("{}h", millis / 3_600_000),
        _ => format!("{}d", millis / 86_400_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_relative_and_absolute() {
        let now = 1_700_000_000_000;
        assert_eq!(moment(now - 180_000, now), "3m ago (2023-11-14 22:10:20Z)");
        assert_eq!(moment(now + 12_500, now), "in 12s (2023-11-14 22:13:32Z)");
        assert_eq!(moment(now, now), "0ms ago (2023-11-14 22:13:20Z)");
        assert_eq!(absolute(u64::MAX), "after the year 9999");
    }
}
