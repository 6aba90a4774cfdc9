//! Cancels a task.

use redrive_core::TaskId;
use redrive_store::{CancelOutcome, TaskDetail};

use super::get_task::get_task;
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// Cancels a task. A task that is CANCELLED sends nothing any more. A task that is still in flight, with
/// `cancel_requested`, ends when its attempt does; that attempt may still reach the dependency.
pub async fn cancel_task(app: &App, caller: &Caller, id: TaskId) -> Result<TaskDetail, OperationError> {
    match app.engine.cancel(caller.tenant.clone(), id).await? {
        // Its state at the cancel: the attempt under way may have ended since.
        CancelOutcome::Done(task) => Ok(TaskDetail { task: *task, answer: None, ..get_task(app, caller, id).await? }),
        CancelOutcome::AlreadyEnded(task) => Err(OperationError::TaskEnded { id, status: task.status }),
        CancelOutcome::NotFound => Err(OperationError::NoSuchTask(id.to_string())),
    }
}
