//! Reads one task.

use redrive_core::TaskId;
use redrive_store::TaskDetail;

use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// One task with its request and, once it has ended, the dependency's answer.
pub async fn get_task(app: &App, caller: &Caller, id: TaskId) -> Result<TaskDetail, OperationError> {
    let detail = app.engine.store().reads().task(caller.tenant.clone(), id).await?;
    detail.ok_or_else(|| OperationError::NoSuchTask(id.to_string()))
}
