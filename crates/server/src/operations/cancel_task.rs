//! Cancels a task.

use redrive_core::TaskId;
use redrive_store::{CancelOutcome, TaskDetail};

use super::get_task::get_task;
use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;

/// Cancels a task. A task that is CANCELLED sends nothing any more. A task that is still in flight, with
/// `cancel_requested`, ends when its attempt does; that attempt may still reach the dependency.
pub async fn cancel_task(app: &App, caller: &Caller, id: TaskId) -> Result<TaskDetail, Failure> {
    match app.engine.cancel(caller.tenant.clone(), id).await? {
        // Its state at the cancel: the attempt under way may have ended since.
        CancelOutcome::Done(task) => Ok(TaskDetail { task: *task, answer: None, ..get_task(app, caller, id).await? }),
        CancelOutcome::AlreadyEnded(task) => Err(Failure::TaskEnded { id, status: task.status }),
        CancelOutcome::NotFound => Err(Failure::NoSuchTask(id.to_string())),
    }
}
