//! Gives the processing of an event up.

use redrive_core::idempotency::{Change, Record};
use redrive_core::{Consumer, RecordName};

use super::record;
use crate::app::App;
use crate::caller::Caller;
use crate::intake::{completion, event};
use crate::operation_error::OperationError;
use crate::wire::OwnerInput;

/// Gives the processing of an event up: the event counts as not seen. Repeating it is safe.
pub async fn release_event(
    app: &App,
    caller: &Caller,
    consumer: Consumer,
    id: RecordName,
    input: &OwnerInput<'_>,
) -> Result<Record, OperationError> {
    let owner = completion::owner(&input.execution_id, input.epoch)?;
    let key = event::key(&caller.tenant, consumer, id);
    record::change(app, &key, owner, Change::Release).await
}
