//! Reserves many idempotency records in one durable commit.

use redrive_core::OperationName;
use redrive_store::Reservation;

use super::record::{self, ReservedOutcome};
use crate::app::App;
use crate::caller::Caller;
use crate::intake::{key, reservation};
use crate::operation_error::OperationError;
use crate::wire::{Malformed, ReserveItem};

/// Reserves many records in one durable commit. Each is judged as it would be alone and does not wait: a bad one, even one
/// that could not be read at all, does not affect the others. The results come in the order of the items; their fields are
/// named from the batch, as in `records[3].key`.
pub async fn reserve_batch(
    app: &App,
    caller: &Caller,
    items: Vec<Result<ReserveItem<'_>, Malformed>>,
) -> Result<Vec<Result<ReservedOutcome, OperationError>>, OperationError> {
    record::check_time(app)?;
    let most = app.limits.batch_tasks;
    if items.len() > most {
        return Err(OperationError::invalid("records", format!("must be at most {most}, got {}", items.len())));
    }
    let at = |at: usize| format!("records[{at}]");
    let checked: Vec<_> =
        items.into_iter().enumerate().map(|(n, item)| check(app, caller, item).map_err(|e| e.within(&at(n)))).collect();
    record::reserve_each(app, checked).await
}

fn check(app: &App, caller: &Caller, item: Result<ReserveItem<'_>, Malformed>) -> Result<Reservation, OperationError> {
    let (operation, given_key, input) = item?.into_parts();
    let operation =
        OperationName::try_new(&*operation).map_err(|rule| OperationError::invalid("operation", rule.to_string()))?;
    let idempotency_key = key::check("key", &given_key)?;
    reservation::check(app, &caller.tenant, operation, &idempotency_key, &input)
}
