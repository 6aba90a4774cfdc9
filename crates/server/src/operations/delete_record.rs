//! Deletes an idempotency record.

use redrive_core::{IdempotencyKey, OperationName};
use redrive_store::{DeletedRecord, SeenRecord};

use super::record::{self, no_such_record};
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// What must be true of a record before it is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordPrecondition {
    /// The record exists.
    Exists,
    /// The record is one of these.
    SeenIn(Vec<SeenRecord>),
}

/// Deletes a record: its operation can be executed again with the same key. An owner that is still at work is fenced.
pub async fn delete_record(
    app: &App,
    caller: &Caller,
    operation: OperationName,
    key: &IdempotencyKey,
    precondition: RecordPrecondition,
) -> Result<(), OperationError> {
    record::check_time(app)?;
    let key = record::key(caller, operation, key)?;
    let (records, now) = (app.engine.store().records(), app.engine.now());
    let seen = match precondition {
        RecordPrecondition::Exists => None,
        RecordPrecondition::SeenIn(seen) => {
            let current = records.read(key.clone(), now).await?.ok_or_else(|| no_such_record(&key))?;
            let current = SeenRecord::of(&current);
            // The store compares again: the record may change until then.
            Some(seen.contains(&current).then_some(current).ok_or(OperationError::RecordChanged)?)
        }
    };
    let _wake = app.record_waiters.wake_on_drop(&key);
    match records.delete(key.clone(), seen, now).await? {
        DeletedRecord::Done(_) => Ok(()),
        DeletedRecord::Changed(_) => Err(OperationError::RecordChanged),
        DeletedRecord::Absent => Err(no_such_record(&key)),
    }
}
