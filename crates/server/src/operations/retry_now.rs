//! Makes a waiting task due now.

use redrive_core::TaskId;
use redrive_store::{BringForwardOutcome, TaskDetail};

use super::get_task::get_task;
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// Makes a waiting task due now. Guards still apply: it is sent as soon as they allow. A task that is claimed and held
/// until its due time is in flight already; its attempt starts now.
pub async fn retry_now(app: &App, caller: &Caller, id: TaskId) -> Result<TaskDetail, OperationError> {
    match app.engine.bring_forward(caller.tenant.clone(), id).await? {
        // Its state when it was brought forward: an attempt may be under way by now.
        BringForwardOutcome::Done(task) => {
            Ok(TaskDetail { task: *task, answer: None, ..get_task(app, caller, id).await? })
        }
        BringForwardOutcome::InFlight(_) => Err(OperationError::TaskInFlight(id)),
        BringForwardOutcome::AlreadyEnded(task) => Err(OperationError::TaskEnded { id, status: task.status }),
        BringForwardOutcome::NotFound => Err(OperationError::NoSuchTask(id.to_string())),
    }
}
