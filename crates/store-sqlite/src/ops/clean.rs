//! Removing tasks that ended long ago, with everything that belongs to them.

use redrive_core::{Status, TaskId, Timestamp};
use redrive_store::{CleanFrom, Cleaned};
use rusqlite::Row;

use crate::codec::{millis, sequence, status};
use crate::keys::KeyHash;
use crate::ops::meta::{self, Name};
use crate::ops::newest_task::newest_kept;
use crate::ops::set_aside::{Damaged, SET_ASIDE, readable, set_aside};
use crate::ops::{alerts, blobs};
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

/// A number below every task.
const START: i64 = -1;

pub(crate) fn clean(
    writer: &mut Writer,
    ended_before: Timestamp,
    from: CleanFrom,
    limit: usize,
) -> Result<Cleaned, SqliteError> {
    let after = match from {
        CleanFrom::Start => START,
        CleanFrom::After(id) => sequence(id),
    };
    let newest = newest_kept(&writer.connection)?;
    let (mut old, last) = look(writer, ended_before, after, limit)?;
    let next = last.filter(|last| newest.is_some_and(|(newest, _)| last.sequence() < newest.cast_unsigned()));
    if let Some((task, tail)) = newest.filter(|(task, _)| old.iter().any(|row| row.task == *task)) {
        meta::set(&writer.connection, Name::NewestCleaned, task)?;
        meta::set(&writer.connection, Name::NewestCleanedTail, tail)?;
    }
    // In the order of the index of keys, so that neighbours share its pages.
    old.sort_unstable_by_key(|row| row.key);
    for row in &old {
        remove(writer, row)?;
    }
    if next.is_none() {
        remove_deleted_versions(writer)?;
    }
    Ok(Cleaned { removed: old.len(), next: next.map(CleanFrom::After) })
}

/// A task to remove.
struct Old {
    task: i64,
    tenant: i64,
    version: i64,
    status: Status,
    ended_at: Option<i64>,
    key: KeyHash,
}

/// The tasks to remove, and the last one that was looked at.
fn look(
    writer: &Writer,
    ended_before: Timestamp,
    after: i64,
    limit: usize,
) -> Result<(Vec<Old>, Option<TaskId>), SqliteError> {
    let mut select = writer.connection.prepare_cached(
        "SELECT tasks.id, tasks.tail, tasks.ended_at, tasks.tenant, tasks.policy, tasks.status, tenants.name,
                tasks.idempotency_key
         FROM tasks CROSS JOIN tenants ON tenants.id = tasks.tenant
         WHERE tasks.id > ?1
         ORDER BY tasks.id
         LIMIT ?2",
    )?;
    // A step that looks at nothing would repeat endlessly.
    let limit = i64::try_from(limit.max(1)).unwrap_or(i64::MAX);
    let mut rows = select.query((after, limit))?;
    let (mut old, mut last, mut damaged) = (Vec::new(), None, Vec::new());
    while let Some(row) = rows.next()? {
        let task: i64 = row.get(0)?;
        last = Some(TaskId::from_parts(task.cast_unsigned(), row.get(1).unwrap_or_default()));
        let is_old = row.get_ref(2)?.as_i64().is_ok_and(|ended_at| ended_at < millis(ended_before));
        if is_old && row.get_ref(5)?.as_i64() != Ok(SET_ASIDE) {
            old.extend(readable(read(row), &mut damaged, |problem| Damaged::task(task, problem))?);
        }
    }
    set_aside(&writer.connection, &damaged)?;
    Ok((old, last))
}

fn read(row: &Row<'_>) -> Result<Old, SqliteError> {
    let task = row.get(0)?;
    let place = |what: &dyn std::fmt::Display| SqliteError::corrupt(format_args!("task {task}"), what);
    let code = row.get(5)?;
    let status = status(code).ok_or_else(|| place(&format_args!("status {code}")))?;
    let tenant = row.get_ref(6)?.as_str().map_err(|error| place(&error))?;
    let key = row.get_ref(7)?.as_str().map_err(|error| place(&error))?;
    Ok(Old {
        task,
        tenant: row.get(3)?,
        version: row.get(4)?,
        status,
        ended_at: row.get(2)?,
        key: KeyHash::of(tenant, key),
    })
}

fn remove(writer: &mut Writer, old: &Old) -> Result<(), SqliteError> {
    let connection = &writer.connection;
    connection.prepare_cached("DELETE FROM tasks WHERE id = ?1")?.execute([old.task])?;
    connection.prepare_cached("DELETE FROM requests WHERE task = ?1")?.execute([old.task])?;
    connection.prepare_cached("DELETE FROM attempts WHERE task = ?1")?.execute([old.task])?;
    connection.prepare_cached("DELETE FROM answers WHERE task = ?1")?.execute([old.task])?;
    blobs::forget_uses(connection, old.task)?;
    if old.status.is_dead_letter() {
        alerts::forget(connection, old.task, old.ended_at)?;
    }
    writer.keys.remove(connection, old.key, old.task)?;
    writer.counters.removed(old.tenant, old.version, old.status);
    Ok(())
}

/// Removes versions of deleted policies that no task refers to any more.
fn remove_deleted_versions(writer: &mut Writer) -> Result<(), SqliteError> {
    writer.counters.write(&writer.connection)?;
    let removed = writer.connection.execute(
        "DELETE FROM policy_versions
         WHERE deleted AND NOT EXISTS (
             SELECT 1 FROM policy_uses WHERE policy_uses.version = policy_versions.id AND policy_uses.kept > 0
         )",
        [],
    )?;
    if removed > 0 {
        writer.connection.execute(
            "DELETE FROM policy_uses
             WHERE NOT EXISTS (SELECT 1 FROM policy_versions WHERE policy_versions.id = policy_uses.version)",
            [],
        )?;
        writer.names.forget();
    }
    Ok(())
}
