//! Conversion of single values.

use std::time::Duration;

use redrive_core::{Class, Status, Timestamp};

/// The number of the first status: the same numbers as in the SQLite store, so that both are read alike.
const FIRST_STATUS: i16 = 2;

/// The number of a status in the tables. Statements that use an index contain it as a literal.
pub(crate) const fn status_code(status: Status) -> i16 {
    FIRST_STATUS + status as i16
}

/// The status with this number.
pub(crate) fn status(code: i16) -> Option<Status> {
    Status::ALL.into_iter().find(|status| status_code(*status) == code)
}

/// The number of a class in the tables.
pub(crate) fn class_code(class: Class) -> i16 {
    class.code().into()
}

pub(crate) fn millis(at: Timestamp) -> i64 {
    at.as_millis().cast_signed()
}

/// A timeout in whole milliseconds, rounded up.
pub(crate) fn whole_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// A duration in microseconds, rounded up so that a wait is never too short. Used for all durations except timeouts.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_spell_out_these_numbers() {
        let codes = Status::ALL.map(status_code);
        assert_eq!(codes, [2, 3, 4, 5, 6, 7]);
        assert_eq!(codes.map(status), Status::ALL.map(Some));
        assert_eq!(status(8), None);
    }

    #[test]
    fn durations_round_up_and_never_wrap() {
        assert_eq!(micros(Duration::from_nanos(1)), 1);
        assert_eq!(micros(Duration::from_micros(1_500)), 1_500);
        assert_eq!(micros(Duration::MAX), i64::MAX);
    }
}
