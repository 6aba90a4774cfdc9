//! Confirms that an event was processed.

use redrive_core::idempotency::{Change, Completion, Record};
use redrive_core::{Consumer, RecordName};

use super::record;
use crate::app::App;
use crate::caller::Caller;
use crate::intake::{completion, event};
use crate::operation_error::OperationError;
use crate::wire::OwnerInput;

/// Confirms that the event was processed: from now on it is a duplicate. Repeating it is safe.
pub async fn confirm_event(
    app: &App,
    caller: &Caller,
    consumer: Consumer,
    id: RecordName,
    input: &OwnerInput<'_>,
) -> Result<Record, OperationError> {
    let owner = completion::owner(&input.execution_id, input.epoch)?;
    let key = event::key(&caller.tenant, consumer, id);
    record::change(app, &key, owner, Change::Complete(Completion::default())).await
}
