//! What the answers that show idempotency records have in common.

use http::header::ETAG;
use redrive_core::idempotency::{Record, RecordKey};

use super::submit_task::IDEMPOTENT_REPLAYED;
use crate::app::App;
use crate::operations::{GrantedRecord, ReservedOutcome, replayed_body};
use crate::rest::call::CallHead;
use crate::rest::problem::Refusal;
use crate::rest::record_tag;
use crate::rest::reply::Reply;
use crate::wire::{PreviousExecution, ReplayedRecord, ReservedRecord, ShownBody, ShownRecord};

/// The most bytes of a stored body that a replay shows; a larger one is referred to.
const MOST_SHOWN: u64 = 1024 * 1024;

/// A reservation that was granted, as it is shown.
pub(crate) fn reserved(granted: &GrantedRecord) -> ReservedRecord {
    ReservedRecord {
        outcome: "reserved",
        execution_id: granted.execution,
        epoch: granted.epoch.0,
        lease_until: granted.lease_until.as_millis(),
        previous: granted.previous.as_ref().map(PreviousExecution::from),
    }
}

/// The answer to a single reservation.
pub(crate) async fn reservation_reply(head: &CallHead, outcome: &ReservedOutcome) -> Result<Reply, Refusal> {
    match outcome {
        ReservedOutcome::Granted(granted) => Reply::json(201, &reserved(granted)),
        ReservedOutcome::Ended(record) => Ok(replay(head, record).await?.with(IDEMPOTENT_REPLAYED, "true")),
    }
}

async fn replay(head: &CallHead, record: &Record) -> Result<Reply, Refusal> {
    let body = record.completion.response.as_ref().map(|response| &response.body);
    let stored = body.and_then(|body| body.stored());
    if let Some(stored) = stored.filter(|stored| stored.length <= MOST_SHOWN) {
        // Counted before it is read: the bytes, and the answer that has them as base64.
        head.exchange.charge.hold(usize::try_from(stored.length).unwrap_or(usize::MAX).saturating_mul(3))?;
        let bytes = replayed_body(&head.context.app, &head.caller, stored).await?;
        return Reply::json(200, &ReplayedRecord::new(record, ShownBody::Bytes(&bytes)));
    }
    let shown = body.and_then(|body| body.inline()).map_or(ShownBody::Reference, ShownBody::Bytes);
    Reply::json(200, &ReplayedRecord::new(record, shown))
}

/// The answer to a change: the record without the body of its response.
pub(crate) fn changed_reply(app: &App, (key, record): &(RecordKey, Record)) -> Result<Reply, Refusal> {
    let shown = ShownRecord::summary(key, record, &app.secrets);
    Ok(Reply::json(200, &shown)?.with(ETAG, record_tag::of(record)))
}

/// A record whose execution is under way.
pub(crate) const UNDER_WAY: &str = r#"{
  "operation": "create-payment",
  "key": "order-1234",
  "state": "IN_PROGRESS",
  "requestHash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2",
  "epoch": 1,
  "leaseUntil": 1731600120000,
  "startedAt": 1731600000000,
  "updatedAt": 1731600060000,
  "expiresAt": 1731686520000
}"#;

/// The same record, given up.
pub(crate) const RELEASED: &str = r#"{
  "operation": "create-payment",
  "key": "order-1234",
  "state": "RELEASED",
  "requestHash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2",
  "epoch": 1,
  "leaseUntil": 1731600002140,
  "startedAt": 1731600000000,
  "updatedAt": 1731600002140,
  "expiresAt": 1731686402140
}"#;

/// The same record after a failure.
pub(crate) const FAILED: &str = r#"{
  "operation": "create-payment",
  "key": "order-1234",
  "state": "FAILED_FINAL",
  "requestHash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2",
  "epoch": 1,
  "leaseUntil": 1731600002140,
  "startedAt": 1731600000000,
  "updatedAt": 1731600002140,
  "expiresAt": 1731686402140,
  "response": { "status": 402, "headers": {}, "bodyBytes": 27 }
}"#;

/// The same record after the operation took place.
pub(crate) const COMPLETED: &str = r#"{
  "operation": "create-payment",
  "key": "order-1234",
  "state": "SUCCEEDED",
  "requestHash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2",
  "epoch": 1,
  "leaseUntil": 1731600002140,
  "startedAt": 1731600000000,
  "updatedAt": 1731600002140,
  "expiresAt": 1731686402140,
  "response": { "status": 201, "headers": { "content-type": "application/json" }, "bodyBytes": 22 },
  "resourceType": "payment",
  "resourceId": "pay_123"
}"#;
