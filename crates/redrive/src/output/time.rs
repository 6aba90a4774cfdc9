//! Moments for people: RFC 3339 in UTC, and how long ago.

use std::num::NonZero;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Cell;
use redrive_core::duration::coarse;
use redrive_core::{Date, Timestamp};
use time::OffsetDateTime;
use time::format_description::well_known::Iso8601;
use time::format_description::well_known::iso8601::{Config, EncodedConfig, TimePrecision};
use time::formatting::Formattable;

/// The machine's time, in milliseconds since the epoch.
pub(crate) fn now_millis() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// The machine's day, in UTC.
pub(crate) fn today() -> Date {
    Date::of(Timestamp::from_millis(now_millis()))
}

/// A moment to the second, and how far it is from now: `2026-01-31T12:00:00Z (3m ago)`.
pub(crate) fn moment(millis: u64, now: u64) -> String {
    format!("{} ({})", rfc3339(millis / 1_000 * 1_000, SECONDS), relative(millis, now))
}

/// A moment to the second for a table; only how far it is from now if the table is too wide.
pub(crate) fn moment_cell(millis: u64, now: u64) -> Cell {
    Cell::from(moment(millis, now)).or_short(relative(millis, now))
}

/// A moment to the millisecond, for what happens several times in a second: `2026-01-31T12:00:00.123Z (3m ago)`.
pub(crate) fn precise_moment(millis: u64, now: u64) -> String {
    format!("{} ({})", rfc3339(millis, MILLISECONDS), relative(millis, now))
}

/// A moment to the millisecond, for lists in the order of time: `2026-01-31T12:00:00.123Z`.
pub(crate) fn timestamp(millis: u64) -> String {
    rfc3339(millis, MILLISECONDS)
}

/// A moment seen from now: `3m ago`, `in 12s`.
fn relative(millis: u64, now: u64) -> String {
    let text = coarse(Duration::from_millis(millis.abs_diff(now)));
    if millis > now { format!("in {text}") } else { format!("{text} ago") }
}

const SECONDS: Iso8601<{ config(TimePrecision::Second { decimal_digits: None }) }> = Iso8601;
const MILLISECONDS: Iso8601<{ config(TimePrecision::Second { decimal_digits: NonZero::new(3) }) }> = Iso8601;

const fn config(precision: TimePrecision) -> EncodedConfig {
    Config::DEFAULT.set_time_precision(precision).encode()
}

fn rfc3339(millis: u64, format: impl Formattable) -> String {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000).ok();
    at.and_then(|at| at.format(&format).ok()).unwrap_or_else(|| "after the year 9999".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_rfc_3339_and_how_far_it_is_from_now() {
        let now = 1_700_000_000_000;
        assert_eq!(moment(now - 180_000, now), "2023-11-14T22:10:20Z (3m ago)");
        assert_eq!(moment(now + 12_500, now), "2023-11-14T22:13:32Z (in 12s)");
        assert_eq!(moment(now, now), "2023-11-14T22:13:20Z (0ms ago)");
        assert_eq!(precise_moment(now - 1_980, now), "2023-11-14T22:13:18.020Z (2s ago)");
        assert_eq!(precise_moment(0, 0), "1970-01-01T00:00:00.000Z (0ms ago)");
        assert_eq!(moment(u64::MAX, u64::MAX), "after the year 9999 (0ms ago)");
    }
}
