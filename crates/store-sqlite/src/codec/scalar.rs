//! Conversion of single values, where SQLite differs from [`redrive_store::encoding`].

use redrive_core::{Status, TaskId, Timestamp};
use redrive_store::encoding;

/// The number of a status in the tables.
pub(crate) const fn status_code(status: Status) -> i64 {
    encoding::status_code(status) as i64
}

/// The row number of a task: 63 bits, so never negative.
pub(crate) fn sequence(id: TaskId) -> i64 {
    id.sequence().cast_signed()
}

/// The timestamp, `None` for a negative number, which is never written.
pub(crate) fn timestamp(millis: i64) -> Option<Timestamp> {
    u64::try_from(millis).ok().map(Timestamp::from_millis)
}

/// The time in this column, if it contains one.
pub(crate) fn time(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get_ref(column)?.as_i64().ok().and_then(timestamp))
}
