//! Gives the execution that owns an idempotency record more time.

use std::time::Duration;

use redrive_core::idempotency::{Change, Record, RecordKey};
use redrive_core::{IdempotencyKey, OperationName};

use super::record;
use crate::app::App;
use crate::caller::Caller;
use crate::idempotency::Settings;
use crate::intake::completion;
use crate::operation_error::OperationError;
use crate::wire::RenewInput;

/// Lets the lease of a record end later. It also works after the lease has ended, as long as no other execution has taken
/// over.
pub async fn renew_record(
    app: &App,
    caller: &Caller,
    operation: OperationName,
    key: &IdempotencyKey,
    input: &RenewInput<'_>,
) -> Result<(RecordKey, Record), OperationError> {
    let key = record::key(caller, operation, key)?;
    let owner = completion::owner(&input.execution_id, input.epoch)?;
    let lease = input.lease_ms.map_or(app.idempotency.lease, Duration::from_millis);
    if input.lease_ms.is_some() && !Settings::LEASES.contains(&lease) {
        let (least, most) = (Settings::LEASES.start().as_millis(), Settings::LEASES.end().as_millis());
        return Err(OperationError::invalid(
            "leaseMs",
            format!("must be from {least} to {most}, got {}", lease.as_millis()),
        ));
    }
    let record = record::change(app, &key, owner, Change::Renew(lease)).await?;
    Ok((key, record))
}
