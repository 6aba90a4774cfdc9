//! Cancels a task.

use redrive_core::TaskId;
use redrive_store::{Cancelled, TaskDetail};

use super::get_task::get_task;
use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;

/// Cancels a task. One that has ended CANCELLED sends nothing any more. One that is still in flight, with
/// `cancel_requested`, ends once its attempt does, which may still reach the dependency.
pub async fn cancel_task(app: &App, caller: &Caller, id: TaskId) -> Result<TaskDetail, Failure> {
    match app.engine.cancel(caller.tenant.clone(), id).await? {
        // As it was when it was cancelled: the attempt under way may have ended it by now.
        Cancelled::Done(task) => Ok(TaskDetail { task: *task, answer: None, ..get_task(app, caller, id).await? }),
        Cancelled::AlreadyEnded(task) => Err(Failure::TaskEnded { id, status: task.status }),
        Cancelled::NotFound => Err(Failure::NoSuchTask(id.to_string())),
    }
}
