//! Storing an attempt: its log entry, and the answer that ended the task.

use std::sync::LazyLock;

use redrive_core::{Attempt, Body};
use rusqlite::Connection;

use super::{EncodedSettlement, Ending};
use crate::bulk::Bulk;
use crate::codec::{EncodedAnswer, EncodedBody, micros, millis, sequence};
use crate::ops::blobs::{self, Part};
use crate::sqlite_error::SqliteError;

pub(super) fn write(connection: &Connection, ends: &[Ending]) -> Result<(), SqliteError> {
    let attempts: Vec<_> = ends.iter().filter_map(|Ending { end, .. }| Some((&**end, end.attempt.as_ref()?))).collect();
    insert_attempts(connection, &attempts)?;
    let answers: Vec<_> = ends.iter().filter_map(|ending| Some((ending, ending.end.answer()?))).collect();
    insert_answers(connection, &answers)
}

/// A claim is settled once. A log entry with the same token exists only if a task's token was set back by hand. The old
/// entry stays, because it may have been read already, and because an error would fail all settlements of the batch,
/// each time.
fn insert_attempts(connection: &Connection, attempts: &[(&EncodedSettlement, &Attempt)]) -> Result<(), SqliteError> {
    static INSERT: LazyLock<Bulk> = LazyLock::new(|| {
        Bulk::new(
            "INSERT OR IGNORE INTO attempts (
                 task, token, number, started_at, duration_us, outcome, response_status, error_kind, error_message,
                 backoff_us, number_in_run
             )",
            11,
        )
    });
    INSERT.insert(connection, attempts, |values, (end, attempt)| {
        let error = attempt.error.as_ref();
        values.put(sequence(end.id))?;
        values.put(end.token.0)?;
        values.put(attempt.number)?;
        values.put(millis(attempt.started_at))?;
        values.put(attempt.duration.map(micros))?;
        values.put(attempt.outcome.as_str())?;
        values.put(attempt.response_status)?;
        values.put(error.map(|error| error.kind.as_str()))?;
        values.put(error.map(|error| error.message.as_str()))?;
        values.put(attempt.backoff.map(micros))?;
        values.put(attempt.number_in_run)
    })
}

/// Replaces the answer of a task that ends again after a replay.
fn insert_answers(connection: &Connection, answers: &[(&Ending, &EncodedAnswer)]) -> Result<(), SqliteError> {
    static INSERT: LazyLock<Bulk> =
        LazyLock::new(|| Bulk::new("INSERT OR REPLACE INTO answers (task, status, headers, truncated, body)", 5));
    let nothing = Body::default();
    INSERT.insert(connection, answers, |values, (Ending { end, keeps_body }, answer)| {
        values.put(sequence(end.id))?;
        values.put(answer.status)?;
        values.put(&answer.headers)?;
        values.put(answer.truncated || !keeps_body)?;
        values.put(EncodedBody(if *keeps_body { &answer.body } else { &nothing }))
    })?;
    for (Ending { end, keeps_body }, answer) in answers {
        if let Some(body) = answer.body.stored().filter(|_| *keeps_body) {
            blobs::note_use(connection, sequence(end.id), Part::Answer, body)?;
        }
    }
    Ok(())
}
