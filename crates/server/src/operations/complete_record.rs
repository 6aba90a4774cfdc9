//! Ends an idempotency record: the operation took place.

use redrive_core::idempotency::{Change, Record, RecordKey};
use redrive_core::{IdempotencyKey, OperationName};

use super::record;
use crate::app::App;
use crate::caller::Caller;
use crate::intake::completion;
use crate::operation_error::OperationError;
use crate::wire::CompleteInput;

/// Ends a record with the result that duplicates get. Repeating it with the same result is safe.
pub async fn complete_record(
    app: &App,
    caller: &Caller,
    operation: OperationName,
    key: &IdempotencyKey,
    input: CompleteInput<'_>,
) -> Result<(RecordKey, Record), OperationError> {
    let key = record::key(caller, operation, key)?;
    let owner = completion::owner(&input.execution_id, input.epoch)?;
    let result = completion::check(app, input.response, input.resource_type.as_ref(), input.resource_id.as_ref())?;
    let record = record::change(app, &key, owner, Change::Complete(result)).await?;
    Ok((key, record))
}
