//! Replays a dead letter.

use redrive_core::TaskId;
use redrive_store::{Replay, TaskDetail};

use super::get_task::get_task;
use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;

/// Replays a dead letter: a new run of the same task, with the same idempotency key, its full attempts and time budget,
/// and the policy version that the task was accepted with.
pub async fn replay_task(app: &App, caller: &Caller, id: TaskId) -> Result<TaskDetail, Failure> {
    match app.engine.replay(caller.tenant.clone(), id).await? {
        // Its state at the replay: an attempt may be under way by now.
        Replay::Done(task) => Ok(TaskDetail { task: *task, answer: None, ..get_task(app, caller, id).await? }),
        Replay::NotDead(task) => Err(Failure::TaskNotDead { id, status: task.status }),
        Replay::PolicyGone(task) => Err(Failure::PolicyGone { task: id, policy: task.policy }),
        Replay::NotFound => Err(Failure::NoSuchTask(id.to_string())),
    }
}
