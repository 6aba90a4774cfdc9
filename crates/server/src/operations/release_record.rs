//! Gives an idempotency record up.

use redrive_core::idempotency::{Change, Record, RecordKey};
use redrive_core::{IdempotencyKey, OperationName};

use super::record;
use crate::app::App;
use crate::caller::Caller;
use crate::intake::completion;
use crate::operation_error::OperationError;
use crate::wire::OwnerInput;

/// Gives a record up: the owner has done nothing, and the next caller is told of no previous execution.
pub async fn release_record(
    app: &App,
    caller: &Caller,
    operation: OperationName,
    key: &IdempotencyKey,
    input: &OwnerInput<'_>,
) -> Result<(RecordKey, Record), OperationError> {
    let key = record::key(caller, operation, key)?;
    let owner = completion::owner(&input.execution_id, input.epoch)?;
    let record = record::change(app, &key, owner, Change::Release).await?;
    Ok((key, record))
}
