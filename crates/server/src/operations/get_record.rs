//! Reads one idempotency record.

use redrive_core::idempotency::{self, Operation, Record, RecordKey};
use redrive_core::{IdempotencyKey, OperationName, RecordName};
use redrive_store::Error;

use super::record::no_such_record;
use crate::app::App;
use crate::caller::Caller;
use crate::intake::reservation::is_submission;
use crate::operation_error::OperationError;

/// One record. The record of a submission to Redrive itself is the task that has the key.
pub async fn get_record(
    app: &App,
    caller: &Caller,
    operation: OperationName,
    idempotency_key: IdempotencyKey,
) -> Result<(RecordKey, Record), OperationError> {
    let is_submission = is_submission(&operation);
    let name = RecordName::from(&idempotency_key);
    let key = RecordKey { tenant: caller.tenant.clone(), operation: Operation::Named(operation), name };
    let store = app.engine.store();
    let record = match is_submission {
        false => store.records().read(key.clone(), app.engine.now()).await?,
        true => match store.reads().by_key(caller.tenant.clone(), idempotency_key).await? {
            Some((task, fingerprint)) => {
                let record = idempotency::record_of(task.id, fingerprint, task.created_at);
                Some(record.map_err(|error| Error::Corrupt(format!("the id of a task {error}")))?)
            }
            None => None,
        },
    };
    let record = record.ok_or_else(|| no_such_record(&key))?;
    Ok((key, record))
}
