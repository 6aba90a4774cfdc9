//! Reads the task that has an idempotency key.

use redrive_core::IdempotencyKey;
use redrive_store::TaskDetail;

use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// The task that was accepted with this key, with its request and, once it has ended, the dependency's answer.
pub async fn get_task_by_key(app: &App, caller: &Caller, key: IdempotencyKey) -> Result<TaskDetail, OperationError> {
    let reads = app.engine.store().reads();
    let none = || OperationError::NoTaskWithKey(key.to_string());
    let (task, _) = reads.by_key(caller.tenant.clone(), key.clone()).await?.ok_or_else(none)?;
    // It may have been deleted since.
    reads.task(caller.tenant.clone(), task.id).await?.ok_or_else(none)
}
