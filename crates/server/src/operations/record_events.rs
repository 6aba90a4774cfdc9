//! Records many events of a consumer in one durable commit.

use redrive_core::idempotency::ExecutionId;
use redrive_core::{Consumer, RecordName};

use super::record;
use super::record_event::EventOutcome;
use crate::app::App;
use crate::caller::Caller;
use crate::intake::event;
use crate::operation_error::OperationError;
use crate::wire::{EventBatch, EventInput};

/// Records many events, or begins their processing, in one durable commit. The results come in the order of the events, each
/// with an execution of its own. The second occurrence of an event is a duplicate, or in progress if it was begun. An id that
/// is not valid does not affect the others.
pub async fn record_events(
    app: &App,
    caller: &Caller,
    consumer: &Consumer,
    batch: &EventBatch<'_>,
) -> Result<Vec<Result<EventOutcome, OperationError>>, OperationError> {
    record::check_time(app)?;
    let most = app.limits.batch_tasks;
    if batch.events.len() > most {
        return Err(OperationError::invalid("events", format!("must be at most {most}, got {}", batch.events.len())));
    }
    let input = EventInput {
        mode: batch.mode.clone(),
        lease_ms: batch.lease_ms,
        window_ms: batch.window_ms,
        execution_id: batch.execution_id.clone(),
    };
    let (terms, of_call) = event::terms(app, consumer, &input)?;
    let checked: Vec<_> = batch
        .events
        .iter()
        .enumerate()
        .map(|(at, id)| {
            let id = RecordName::try_new(&**id)
                .map_err(|rule| OperationError::invalid(format!("events[{at}]"), rule.to_string()))?;
            let key = event::key(&caller.tenant, consumer.clone(), id);
            Ok(event::reservation(key, terms, execution_of(of_call, at)))
        })
        .collect();
    let results = record::reserve_each(app, checked).await?;
    Ok(results.into_iter().map(|result| result.map(EventOutcome::from)).collect())
}

/// The execution of the event at this position. The same call has the same executions, so that it can be repeated; an event
/// that occurs twice has two, so that the second occurrence is not taken for a repeated call.
fn execution_of(call: ExecutionId, position: usize) -> ExecutionId {
    ExecutionId::from_u128(call.as_u128() ^ position as u128)
}
