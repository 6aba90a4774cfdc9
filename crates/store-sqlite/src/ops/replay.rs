//! Replaying a dead letter.

use redrive_core::Timestamp;
use redrive_store::{ReplayOutcome, TaskKey};
use rusqlite::Connection;

use crate::codec::{millis, sequence};
use crate::ops::blobs::{self, Part};
use crate::ops::{alerts, find};
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

pub(crate) fn replay(writer: &mut Writer, key: &TaskKey, now: Timestamp) -> Result<ReplayOutcome, SqliteError> {
    let Some(found) = find::row(&writer.connection, &mut writer.names, key)? else {
        return Ok(ReplayOutcome::NotFound);
    };
    let dead = found.task;
    if !dead.status.is_dead_letter() {
        return Ok(ReplayOutcome::NotDead(Box::new(dead)));
    }
    if writer.names.version_key(&writer.connection, found.tenant, &dead.policy)?.is_none() {
        return Ok(ReplayOutcome::PolicyGone(Box::new(dead)));
    }
    let mut task = dead.clone();
    task.begin_next_run(now);
    update(&writer.connection, &task, now)?;
    let mut delete = writer.connection.prepare_cached("DELETE FROM answers WHERE task = ?1")?;
    delete.execute([sequence(key.id)])?;
    drop(delete);
    blobs::forget_use(&writer.connection, sequence(key.id), Part::Answer)?;
    alerts::forget(&writer.connection, sequence(key.id), dead.ended_at.map(millis))?;
    writer.counters.moved(found.tenant, found.version, dead.status, task.status);
    Ok(ReplayOutcome::Done(Box::new(task)))
}

/// Writes the columns that a new run changes; token and error stay.
fn update(connection: &Connection, task: &redrive_core::Task, now: Timestamp) -> Result<(), SqliteError> {
    let mut update = connection.prepare_cached(
        "UPDATE tasks SET
             status = 2, reason = NULL, run = ?2, attempts_before = ?3, run_started_at = ?4, deadline_at = ?5,
             next_attempt_at = ?4, ended_at = NULL, backoff_us = NULL, cancel_requested = 0, class = ?6, dns_failures = 0
         WHERE id = ?1",
    )?;
    let (id, deadline, class) = (sequence(task.id), millis(task.deadline_at), task.class().code());
    update.execute((id, task.run, task.attempts_before, millis(now), deadline, class))?;
    Ok(())
}
