//! What the answers that show events have in common.

use redrive_core::idempotency::Record;
use redrive_core::{Consumer, RecordName};

use crate::operations::GrantedRecord;
use crate::rest::problem::Refusal;
use crate::rest::reply::Reply;
use crate::wire::{DuplicateEvent, NewEvent, PreviousExecution, ShownEvent};

/// An event that is a duplicate.
pub(crate) const DUPLICATE: DuplicateEvent = DuplicateEvent { outcome: "duplicate" };

/// A new event, as it is shown. An event that is recorded at once has no lease.
pub(crate) fn new_event(granted: &GrantedRecord, is_begun: bool) -> NewEvent {
    NewEvent {
        outcome: "new",
        execution_id: granted.execution,
        epoch: granted.epoch.0,
        lease_until: is_begun.then(|| granted.lease_until.as_millis()),
        previous: granted.previous.as_ref().map(PreviousExecution::from),
    }
}

/// The answer to a change of an event.
pub(crate) fn changed_reply(consumer: &Consumer, event: &RecordName, record: &Record) -> Result<Reply, Refusal> {
    Reply::json(200, &ShownEvent::new(consumer.as_str(), event.as_str(), record))
}

/// An event that was confirmed.
pub(crate) const CONFIRMED: &str = r#"{
  "consumer": "billing",
  "eventId": "evt-88",
  "state": "SUCCEEDED",
  "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2",
  "epoch": 1,
  "updatedAt": 1731600000412,
  "expiresAt": 1732204800412
}"#;

/// The same event, given up.
pub(crate) const RELEASED: &str = r#"{
  "consumer": "billing",
  "eventId": "evt-88",
  "state": "RELEASED",
  "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2",
  "epoch": 1,
  "updatedAt": 1731600000412,
  "expiresAt": 1732204800412
}"#;
