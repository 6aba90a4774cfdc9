//! Ends an idempotency record: the execution failed.

use redrive_core::idempotency::{Change, Completion, Record, RecordKey};
use redrive_core::{IdempotencyKey, OperationName};

use super::record;
use crate::app::App;
use crate::caller::Caller;
use crate::intake::completion;
use crate::operation_error::OperationError;
use crate::wire::{FailInput, FieldFault};

/// Ends a record: for good, with the result that duplicates get, or so that the next caller may execute the operation again.
/// Repeating it is safe.
pub async fn fail_record(
    app: &App,
    caller: &Caller,
    operation: OperationName,
    key: &IdempotencyKey,
    input: FailInput<'_>,
) -> Result<(RecordKey, Record), OperationError> {
    let key = record::key(caller, operation, key)?;
    let owner = completion::owner(&input.execution_id, input.epoch)?;
    let is_retryable = input.retryable;
    let result = completion::check(app, input.response, input.resource_type.as_ref(), input.resource_id.as_ref())?;
    let change = match is_retryable {
        true => retryable(&result)?,
        false => Change::FailFinal(result),
    };
    let record = record::change(app, &key, owner, change).await?;
    Ok((key, record))
}

/// A failure that may be retried has no result: the next execution will have one.
fn retryable(result: &Completion) -> Result<Change, OperationError> {
    let given = [("response", result.response.is_some()), ("resourceType", result.resource.is_some())];
    let refused = given.into_iter().filter(|(_, is_given)| *is_given).map(|(field, _)| FieldFault {
        field: field.into(),
        message: "must not be given for a retryable failure: duplicates do not get it".into(),
    });
    let refused: Vec<FieldFault> = refused.collect();
    if refused.is_empty() { Ok(Change::FailRetryable) } else { Err(OperationError::Invalid(refused)) }
}
