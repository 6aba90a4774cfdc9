//! Records an event of a consumer: decides whether it is new.

use redrive_core::{Consumer, RecordName};

use super::record::{self, GrantedRecord, ReservedOutcome};
use crate::app::App;
use crate::caller::Caller;
use crate::intake::event;
use crate::operation_error::OperationError;
use crate::wire::EventInput;

/// Whether an event was seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventOutcome {
    /// It is new: the caller processes it.
    New(GrantedRecord),
    /// It was seen before: the caller skips it.
    Duplicate,
}

/// Records one event, or begins its processing. An event that another execution has begun is a failure.
pub async fn record_event(
    app: &App,
    caller: &Caller,
    consumer: Consumer,
    id: RecordName,
    input: &EventInput<'_>,
) -> Result<EventOutcome, OperationError> {
    record::check_time(app)?;
    let (terms, execution) = event::terms(app, &consumer, input)?;
    let reservation = event::reservation(event::key(&caller.tenant, consumer, id), terms, execution);
    let answer = record::reserve_one(app, &reservation).await?;
    record::outcome(app, &reservation, answer).map(EventOutcome::from)
}

impl From<ReservedOutcome> for EventOutcome {
    fn from(outcome: ReservedOutcome) -> Self {
        match outcome {
            ReservedOutcome::Granted(granted) => EventOutcome::New(granted),
            ReservedOutcome::Ended(_) => EventOutcome::Duplicate,
        }
    }
}
