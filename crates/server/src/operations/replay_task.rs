//! Puts a dead letter back to work.

use redrive_core::{TaskId, TenantId};
use redrive_store::{ReplayOutcome, TaskDetail};

use super::get_task::get_task;
use crate::app::App;
use crate::failure::Failure;

/// Puts a dead letter back to work, on the same task and with the same idempotency key: a new run with all of its
/// attempts and all of its time, by the policy version that the task keeps.
pub async fn replay_task(app: &App, tenant: &TenantId, id: TaskId) -> Result<TaskDetail, Failure> {
    match app.engine.replay(tenant.clone(), id).await? {
        // As it was when it was replayed: it may be on its way by now.
        ReplayOutcome::Done(task) => Ok(TaskDetail { task: *task, answer: None, ..get_task(app, tenant, id).await? }),
        ReplayOutcome::NotDead(task) => Err(Failure::TaskNotDead { id, status: task.status }),
        ReplayOutcome::PolicyGone(task) => Err(Failure::PolicyGone { task: id, policy: task.policy }),
        ReplayOutcome::NotFound => Err(Failure::NoSuchTask(id.to_string())),
    }
}
