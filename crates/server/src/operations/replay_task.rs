//! Replays a dead letter.

use redrive_core::TaskId;
use redrive_store::{ReplayOutcome, TaskDetail};

use super::get_task::get_task;
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// Replays a dead letter: a new run of the same task, with the same idempotency key, its full attempts and time budget,
/// and the policy version that the task was accepted with.
pub async fn replay_task(app: &App, caller: &Caller, id: TaskId) -> Result<TaskDetail, OperationError> {
    match app.engine.replay(caller.tenant.clone(), id).await? {
        // Its state at the replay: an attempt may be under way by now.
        ReplayOutcome::Done(task) => Ok(TaskDetail { task: *task, answer: None, ..get_task(app, caller, id).await? }),
        ReplayOutcome::NotDead(task) => Err(OperationError::TaskNotDead { id, status: task.status }),
        ReplayOutcome::PolicyGone(task) => Err(OperationError::PolicyGone { task: id, policy: task.policy }),
        ReplayOutcome::NotFound => Err(OperationError::NoSuchTask(id.to_string())),
    }
}
