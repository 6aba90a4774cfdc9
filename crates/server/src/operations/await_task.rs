//! Waits until a task has ended.

use std::future::Future;
use std::time::Duration;

use redrive_core::TaskId;
use redrive_store::TaskDetail;

use super::get_task::get_task;
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// The task as soon as it has ended. Otherwise its current state when `within` or the longest allowed wait has passed,
/// or when `interrupted` ends.
pub async fn await_task(
    app: &App,
    caller: &Caller,
    id: TaskId,
    within: Duration,
    interrupted: impl Future<Output = ()>,
) -> Result<TaskDetail, OperationError> {
    let within = within.min(app.limits.longest_wait);
    tokio::select! {
        biased;
        detail = app.engine.ended(caller.tenant.clone(), id, within) => {
            detail?.ok_or_else(|| OperationError::NoSuchTask(id.to_string()))
        }
        () = interrupted => get_task(app, caller, id).await,
    }
}
