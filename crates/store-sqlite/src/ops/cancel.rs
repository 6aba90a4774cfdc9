//! Taking a task back.

use redrive_core::{Reason, Status, TaskId, TenantId, Timestamp};
use redrive_store::Cancelled;

use crate::codec::{millis, sequence};
use crate::failure::Failure;
use crate::ops::find;
use crate::writer::Writer;

pub(crate) fn cancel(writer: &mut Writer, tenant: &TenantId, id: TaskId, now: Timestamp) -> Result<Cancelled, Failure> {
    let Some(found) = find::row(&writer.connection, &mut writer.names, tenant, id)? else {
        return Ok(Cancelled::NotFound);
    };
    let mut task = found.task;
    match task.status {
        Status::Pending => {
            let mut update = writer.connection.prepare_cached(
                "UPDATE tasks SET status = 7, reason = ?2, ended_at = ?3, next_attempt_at = NULL WHERE id = ?1",
            )?;
            update.execute((sequence(id), Reason::Cancelled.as_str(), millis(now)))?;
            writer.counters.moved(found.tenant, found.version, Status::Pending, Status::Cancelled);
            task.status = Status::Cancelled;
            task.reason = Some(Reason::Cancelled);
            task.ended_at = Some(now);
            task.next_attempt_at = None;
        }
        // The attempt under way may still succeed: its settlement decides.
        Status::InFlight => {
            let mut update = writer.connection.prepare_cached("UPDATE tasks SET cancel_requested = 1 WHERE id = ?1")?;
            update.execute([sequence(id)])?;
            task.cancel_requested = true;
        }
        _ => return Ok(Cancelled::AlreadyEnded(Box::new(task))),
    }
    Ok(Cancelled::Done(Box::new(task)))
}
