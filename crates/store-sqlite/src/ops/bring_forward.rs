//! Having a pending task tried now.

use redrive_core::{Status, TaskId, TenantId, Timestamp};
use redrive_store::BroughtForward;

use crate::codec::{millis, sequence};
use crate::failure::Failure;
use crate::ops::find;
use crate::writer::Writer;

pub(crate) fn bring_forward(
    writer: &mut Writer,
    tenant: &TenantId,
    id: TaskId,
    now: Timestamp,
) -> Result<BroughtForward, Failure> {
    let Some(found) = find::row(&writer.connection, &mut writer.names, tenant, id)? else {
        return Ok(BroughtForward::NotFound);
    };
    let mut task = found.task;
    match task.status {
        Status::Pending => {}
        Status::InFlight => return Ok(BroughtForward::InFlight(Box::new(task))),
        _ => return Ok(BroughtForward::AlreadyEnded(Box::new(task))),
    }
    if task.next_attempt_at.is_none_or(|due| due > now) {
        let mut update = writer.connection.prepare_cached("UPDATE tasks SET next_attempt_at = ?2 WHERE id = ?1")?;
        update.execute((sequence(id), millis(now)))?;
        task.next_attempt_at = Some(now);
    }
    Ok(BroughtForward::Done(Box::new(task)))
}
