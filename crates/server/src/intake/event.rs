//! Checks an event of a consumer.

use std::time::Duration;

use redrive_core::idempotency::{ExecutionId, Operation, RecordKey, RequestHash, Reserve};
use redrive_core::{Consumer, RecordName, TenantId};
use redrive_store::Reservation;

use super::faults::Faults;
use super::reservation::{execution, millis};
use crate::app::App;
use crate::idempotency::Settings;
use crate::operation_error::OperationError;
use crate::standard::Kept;
use crate::wire::EventInput;

/// The hash of every event: an event is identified by its id alone.
const EVENT_HASH: RequestHash = RequestHash([0; 32]);

/// How events of a consumer are recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventTerms {
    lease: Duration,
    window: Duration,
    /// Whether they count as seen at once.
    is_complete: bool,
}

/// Checks how events are recorded. Returns the execution as well: the one that the caller gave, or a new one.
pub(crate) fn terms(
    app: &App,
    consumer: &Consumer,
    input: &EventInput<'_>,
) -> Result<(EventTerms, ExecutionId), OperationError> {
    let mut faults = Faults::default();
    let settings = &app.idempotency;
    let is_complete = match input.mode.as_deref() {
        None | Some("record") => true,
        Some("begin") => false,
        Some(_) => {
            faults.add("mode", "must be record or begin");
            true
        }
    };
    if is_complete && input.lease_ms.is_some() {
        faults.add("leaseMs", "must be given only with the mode begin");
    }
    let lease = millis("leaseMs", input.lease_ms, settings.lease, Settings::LEASES, &mut faults);
    let window = millis("windowMs", input.window_ms, settings.window_of(consumer), Settings::RETENTIONS, &mut faults);
    let execution = execution(app, input.execution_id.as_deref(), &mut faults);
    if let Some(failure) = faults.into_failure_if_any() {
        return Err(failure);
    }
    if input.window_ms.is_some() {
        app.standard.judge_retention(Kept::Events, "windowMs", window)?;
    }
    Ok((EventTerms { lease, window, is_complete }, execution))
}

/// The key of an event.
pub(crate) fn key(tenant: &TenantId, consumer: Consumer, event: RecordName) -> RecordKey {
    RecordKey { tenant: tenant.clone(), operation: Operation::Inbox(consumer), name: event }
}

/// The reservation of an event.
pub(crate) fn reservation(key: RecordKey, terms: EventTerms, execution: ExecutionId) -> Reservation {
    let EventTerms { lease, window, is_complete } = terms;
    Reservation { key, ask: Reserve { request_hash: EVENT_HASH, execution, lease, retention: window, is_complete } }
}
