//! A moment in a request: epoch milliseconds or an RFC 3339 text.

use std::borrow::Cow;
use std::fmt;

use redrive_core::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The accepted forms of a moment, in words.
const EXPECTED: &str = "epoch milliseconds or an RFC 3339 time such as 2026-01-31T12:00:00Z";

/// A moment that a caller gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(pub Timestamp);

/// The text is not a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be {EXPECTED}")]
pub struct NotAMoment;

impl Moment {
    /// A moment beyond the range of the store is refused.
    fn from_millis(millis: u64) -> Option<Self> {
        (millis <= Timestamp::MAX.as_millis()).then(|| Moment(Timestamp::from_millis(millis)))
    }
}

impl std::str::FromStr for Moment {
    type Err = NotAMoment;

    fn from_str(text: &str) -> Result<Self, NotAMoment> {
        if let Ok(millis) = text.parse::<u64>() {
            return Moment::from_millis(millis).ok_or(NotAMoment);
        }
        let time = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| NotAMoment)?;
        let millis = time.unix_timestamp_nanos().div_euclid(1_000_000);
        u64::try_from(millis).ok().and_then(Moment::from_millis).ok_or(NotAMoment)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MomentVisitor)
    }
}

struct MomentVisitor;

impl Visitor<'_> for MomentVisitor {
    type Value = Moment;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_u64<E: Error>(self, millis: u64) -> Result<Moment, E> {
        Moment::from_millis(millis).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Unsigned(millis), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Moment, E> {
        // Digits in quotes are not a number in JSON: a document says which of the two it means.
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(E::invalid_value(serde::de::Unexpected::Str(text), &self));
        }
        text.parse().map_err(|_: NotAMoment| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

impl JsonSchema for Moment {
    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A moment: epoch milliseconds, or an RFC 3339 text.",
            "oneOf": [
                { "type": "integer", "format": "int64", "minimum": 0 },
                { "type": "string", "format": "date-time" },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_epoch_milliseconds_or_rfc_3339() {
        for (text, expected) in [
            ("1700000000000", Some(1_700_000_000_000)),
            ("2023-11-14T22:13:20Z", Some(1_700_000_000_000)),
            ("2023-11-15T00:13:20.25+02:00", Some(1_700_000_000_250)),
            ("1969-12-31T23:59:59Z", None),
            ("yesterday", None),
            ("2023-11-14", None),
            ("-5", None),
            ("9223372036854775807", Some(9_223_372_036_854_775_807)),
            ("9223372036854775808", None),
            ("", None),
        ] {
            let millis = text.parse::<Moment>().ok().map(|moment| moment.0.as_millis());
            assert_eq!(millis, expected, "{text:?}");
        }
    }
}
