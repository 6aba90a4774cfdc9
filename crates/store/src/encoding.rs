//! How values are written into tables: the same in every SQL store, so that they can be read and documented alike.

use std::time::Duration;

use redrive_core::{Request, Status, Timestamp};
use serde::Serialize;

use crate::Error;

/// The number of the first status. SQLite stores 0 and 1 in no bytes at all and 2 to 127 in one. So a change of status
/// does not change the size of a row, and a row that does not grow is overwritten in place.
const FIRST_STATUS: i16 = 2;

/// The number of a status in the tables. Statements that use an index contain it as a literal.
pub const fn status_code(status: Status) -> i16 {
    FIRST_STATUS + status as i16
}

/// The status with this number.
pub fn status(code: i64) -> Option<Status> {
    Status::ALL.into_iter().find(|status| i64::from(status_code(*status)) == code)
}

/// A moment in epoch milliseconds.
pub fn millis(at: Timestamp) -> i64 {
    at.as_millis().cast_signed()
}

/// A timeout in whole milliseconds, rounded up.
pub fn whole_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// A duration in microseconds, rounded up so that a wait is never too short. Used for all durations except timeouts.
pub fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(i64::MAX)
}

/// A value as JSON, `None` if there is nothing to store.
pub fn json(value: &impl Serialize, is_empty: bool) -> Result<Option<String>, Error> {
    if is_empty {
        return Ok(None);
    }
    let text = serde_json::to_string(value);
    text.map(Some).map_err(|error| Error::Unavailable(format!("writing a value as JSON: {error}")))
}

/// The parts of a request that are stored as JSON, `None` where there is nothing to store. Encoded by the caller, so that
/// the thread or connection that writes only writes.
#[derive(Debug)]
pub struct EncodedRequest {
    /// The header fields.
    pub headers: Option<String>,
    /// The task's own changes to its policy.
    pub overrides: Option<String>,
    /// The labels.
    pub labels: Option<String>,
}

impl EncodedRequest {
    /// Encodes a request.
    pub fn new(request: &Request) -> Result<Self, Error> {
        Ok(EncodedRequest {
            headers: json(&request.headers, request.headers.is_empty())?,
            overrides: json(&request.overrides, request.overrides.is_none())?,
            labels: json(&request.labels, request.labels.is_empty())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_spell_out_these_numbers() {
        let codes = Status::ALL.map(status_code);
        assert_eq!(codes, [2, 3, 4, 5, 6, 7]);
        assert_eq!(codes.map(|code| status(code.into())), Status::ALL.map(Some));
        assert_eq!(status(8), None);
    }

    #[test]
    fn durations_round_up_and_never_wrap() {
        assert_eq!(micros(Duration::from_nanos(1)), 1);
        assert_eq!(micros(Duration::from_micros(1_500)), 1_500);
        assert_eq!(micros(Duration::MAX), i64::MAX);
        assert_eq!(whole_millis(Duration::from_nanos(1)), 1);
    }
}
