//! Puts a dead letter back to work.

use redrive_core::TaskId;
use redrive_store::{Replay, TaskDetail};

use super::get_task::get_task;
use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;

/// Puts a dead letter back to work, on the same task and with the same idempotency key: a new run with all of its
/// attempts and all of its time, by the policy version that the task keeps.
pub async fn replay_task(app: &App, caller: &Caller, id: TaskId) -> Result<TaskDetail, Failure> {
    match app.engine.replay(caller.tenant.clone(), id).await? {
        // As it was when it was replayed: it may be on its way by now.
        Replay::Done(task) => Ok(TaskDetail { task: *task, answer: None, ..get_task(app, caller, id).await? }),
        Replay::NotDead(task) => Err(Failure::TaskNotDead { id, status: task.status }),
        Replay::PolicyGone(task) => Err(Failure::PolicyGone { task: id, policy: task.policy }),
        Replay::NotFound => Err(Failure::NoSuchTask(id.to_string())),
    }
}
