//! Counting the pending tasks of a lane.

use redrive_core::{Class, Lane, TaskId, Timestamp};
use redrive_store::Backlog;

use crate::codec::millis;
use crate::readers::Reader;
use crate::sqlite_error::SqliteError;

/// The tasks of a class that are due. Answered from the index alone, up to a limit.
pub(crate) const DUE: &str = "SELECT count(*) FROM (
     SELECT 1 FROM tasks WHERE status = 2 AND lane = ?1 AND class = ?2 AND next_attempt_at <= ?3 LIMIT ?4)";

/// The tasks of a class that are due later.
pub(crate) const WAITING: &str = "SELECT count(*) FROM (
     SELECT 1 FROM tasks WHERE status = 2 AND lane = ?1 AND class = ?2 AND next_attempt_at > ?3 LIMIT ?4)";

/// The retries that are due first, by the time at which their tasks were accepted: ids grow with it. Answered from the index
/// alone, of which each entry ends with the id.
pub(crate) const OLD_RETRIES: &str = "SELECT count(*) FROM (
     SELECT id FROM tasks WHERE status = 2 AND lane = ?1 AND class = ?2 ORDER BY next_attempt_at LIMIT ?4)
     WHERE id < ?3";

pub(crate) fn backlog(reader: &mut Reader, lane: &Lane, now: Timestamp, most: u32) -> Result<Backlog, SqliteError> {
    let Reader { connection, names } = reader;
    let Some(key) = names.lane_key(connection, lane)? else { return Ok(Backlog::default()) };
    let count = |sql: &str| -> Result<u32, SqliteError> {
        let mut select = connection.prepare_cached(sql)?;
        let mut counted = 0;
        for class in Class::ALL {
            let parameters = (key.lane, class.code(), millis(now), most - counted);
            counted += select.query_row(parameters, |row| row.get::<_, u32>(0))?;
        }
        Ok(counted)
    };
    Ok(Backlog { due: count(DUE)?, waiting: count(WAITING)? })
}

pub(crate) fn old_retries(
    reader: &mut Reader,
    lane: &Lane,
    accepted_before: Timestamp,
    look_at: u32,
) -> Result<u32, SqliteError> {
    let Reader { connection, names } = reader;
    let Some(key) = names.lane_key(connection, lane)? else { return Ok(0) };
    let first_new = TaskId::first_sequence(accepted_before).cast_signed();
    let parameters = (key.lane, Class::Retry.code(), first_new, look_at);
    Ok(connection.prepare_cached(OLD_RETRIES)?.query_row(parameters, |row| row.get(0))?)
}
