//! Conversion of single values.

use std::time::Duration;

use redrive_core::{Status, TaskId, Timestamp};

/// The number of the first status. SQLite stores 0 and 1 in no bytes at all and 2 to 127 in one. So a change of status
/// does not change the size of a row, and a row that does not grow is overwritten in place.
const FIRST_STATUS: i64 = 2;

/// The number of a status in the tables. Statements that use an index contain it as a literal.
pub(crate) const fn status_code(status: Status) -> i64 {
    FIRST_STATUS + status as i64
}

/// The status with this number.
pub(crate) fn status(code: i64) -> Option<Status> {
    Status::ALL.into_iter().find(|status| status_code(*status) == code)
}

/// The row number of a task: 63 bits, so never negative.
pub(crate) fn sequence(id: TaskId) -> i64 {
    id.sequence().cast_signed()
}

pub(crate) fn millis(at: Timestamp) -> i64 {
    at.as_millis().cast_signed()
}

/// The timestamp, `None` for a negative number, which is never written.
pub(crate) fn timestamp(millis: i64) -> Option<Timestamp> {
    u64::try_from(millis).ok().map(Timestamp::from_millis)
}

/// The time in this column, if it contains one.
pub(crate) fn time(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get_ref(column)?.as_i64().ok().and_then(timestamp))
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
