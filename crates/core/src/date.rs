//! A calendar day: the last day of an approval, in UTC.
//!
//! Not here: times of day, time zones, and the current day.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::Timestamp;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// A day of the proleptic Gregorian calendar, from 1970-01-01 to 9999-12-31; written `2027-01-31`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

/// The text is not a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a day such as 2027-01-31, from 1970-01-01 to 9999-12-31")]
pub struct NotADate;

impl Date {
    /// The last day that can be written.
    pub const LAST: Date = Date { year: 9999, month: 12, day: 31 };

    /// This day, if there is one.
    pub const fn try_new(year: u16, month: u8, day: u8) -> Result<Self, NotADate> {
        if year < 1970 || year > 9999 || month < 1 || month > 12 || day < 1 || day > days_in(year, month) {
            return Err(NotADate);
        }
        Ok(Date { year, month, day })
    }

    /// The day of a moment, in UTC.
    pub fn of(at: Timestamp) -> Self {
        let mut days = at.as_millis() / DAY_MS;
        for year in 1970..=9999 {
            let in_year = if is_leap(year) { 366 } else { 365 };
            if days >= in_year {
                days -= in_year;
                continue;
            }
            for month in 1..=12 {
                let in_month = u64::from(days_in(year, month));
                if days < in_month {
                    let day = u8::try_from(days).unwrap_or(0) + 1;
                    return Date { year, month, day };
                }
                days -= in_month;
            }
        }
        Date::LAST
    }
}

const fn is_leap(year: u16) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_in(year: u16, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl FromStr for Date {
    type Err = NotADate;

    fn from_str(text: &str) -> Result<Self, NotADate> {
        let well_formed = text.len() == 10
            && text.bytes().enumerate().all(|(at, byte)| match at {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !well_formed {
            return Err(NotADate);
        }
        let (year, month, day) = (text[..4].parse(), text[5..7].parse(), text[8..].parse());
        Date::try_new(year.map_err(|_| NotADate)?, month.map_err(|_| NotADate)?, day.map_err(|_| NotADate)?)
    }
}

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Date {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Date".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_read_as_it_is_written() {
        for text in ["1970-01-01", "2024-02-29", "2000-02-29", "2027-12-31", "9999-12-31"] {
            assert_eq!(text.parse::<Date>().map(|date| date.to_string()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn what_is_no_day_is_refused() {
        for text in [
            "",
            "2027-1-31",
            "2027/01/31",
            "2027-01-31T00:00:00Z",
            "2027-00-10",
            "2027-13-10",
            "2027-04-31",
            "2027-02-29",
            "2100-02-29",
            "1969-12-31",
            "tomorrow..",
            "+027-01-01",
            "２０-01",
        ] {
            assert_eq!(text.parse::<Date>(), Err(NotADate), "{text:?}");
        }
    }

    #[test]
    fn a_moment_has_its_day() {
        for (millis, expected) in [
            (0, "1970-01-01"),
            (DAY_MS - 1, "1970-01-01"),
            (DAY_MS, "1970-01-02"),
            (951_782_400_000, "2000-02-29"),
            (1_709_164_800_000, "2024-02-29"),
            (1_735_689_599_999, "2024-12-31"),
            (1_735_689_600_000, "2025-01-01"),
            (u64::MAX, "9999-12-31"),
        ] {
            assert_eq!(Date::of(Timestamp::from_millis(millis)).to_string(), expected);
        }
    }

    #[test]
    fn days_are_in_order() {
        let day = |text: &str| text.parse::<Date>().unwrap();
        assert!(day("2026-12-31") < day("2027-01-01"));
        assert!(day("2027-01-31") < day("2027-02-01"));
    }
}
