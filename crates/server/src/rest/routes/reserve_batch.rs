//! `POST /idempotency-records/batch`

use http::Method;
use redrive_core::Body;
use redrive_core::idempotency::Record;
use redrive_store::MOST_BODY_BYTES;

use super::record_answer;
use crate::operation_error::OperationError;
use crate::operations::{ReservedOutcome, reserve_batch};
use crate::rest::call::{Call, CallHead};
use crate::rest::problem::{self, Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Document, Effect, Example, Group, Route, of};
use crate::wire::{
    ReplayedRecord, ReserveBatch, ReserveBatchAnswer, ReserveBatchResult, ReserveItem, ShownBody, parse,
};

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/idempotency-records/batch",
    id: "reserveBatch",
    group: Group::Records,
    summary: "Reserve many records",
    description: "Reserves up to 1,000 records in one durable commit. Each item is decided as a single reservation would be, in order, and has its own \
        result; an invalid item does not affect the others. It does not wait. Bodies that are stored apart are referred to by `bodyRef`, and \
        once the answer shows 1 MiB of bodies, the others are left out (`bodyLeftOut`).",
    effect: Effect::Writes,
    access: Access::Submit,
    parameters: &[],
    request: Some(Document::Json {
        schema: of::<ReserveBatch<'static>>,
        is_required: true,
        description: "The records.",
        example: r#"{
  "records": [
    {
      "operation": "create-payment",
      "key": "order-1234",
      "requestHash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    },
    { "operation": "create-payment", "key": "order-1235" }
  ]
}"#,
    }),
    answers: &[Answer {
        status: 200,
        description: "The result of each reservation.",
        headers: &[],
        content: Content::Json(of::<ReserveBatchAnswer<'static>>),
    }],
    problems: &[&kind::INVALID_VALUE],
    example: Example {
        target: "/idempotency-records/batch",
        headers: &[],
        answer: r#"{
  "results": [
    {
      "status": 201,
      "record": {
        "outcome": "reserved",
        "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2",
        "epoch": 1,
        "leaseUntil": 1731600060000
      }
    },
    {
      "status": 422,
      "error": {
        "type": "/problems/invalid-value",
        "title": "A value is invalid",
        "status": 422,
        "detail": "records[1].requestHash must be given, or request: what the key stands for",
        "field": "records[1].requestHash",
        "errors": [
          { "field": "records[1].requestHash", "message": "must be given, or request: what the key stands for" }
        ]
      }
    }
  ]
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

/// The most bytes of bodies that one answer of the store has.
const MOST_BODIES: usize = MOST_BODY_BYTES as usize;

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let limit = call.app().limits.batch_bytes;
    let (bytes, CallHead { context, caller, exchange, .. }) = call.read_json(limit).await?;
    let app = &*context.app;
    let batch: ReserveBatch<'_> = parse(&bytes)?;
    let items = batch.records.iter().map(|item| parse::<ReserveItem<'_>>(item.get().as_bytes())).collect();
    // It is never closed. The records may bring bodies into memory, of which the answer shows little: counted before they are
    // read, and before anything is reserved.
    let _reading = app.pages.acquire().await.ok();
    exchange.charge.hold(bytes.len().saturating_add(MOST_BODIES))?;
    let outcomes = reserve_batch(app, &caller, items).await?;
    let mut left = app.limits.page_bytes;
    let results = outcomes.iter().map(|outcome| result(outcome, &mut left)).collect();
    Reply::json(200, &ReserveBatchAnswer { results })
}

/// One result; `left` is how many bytes of bodies may still be shown.
fn result<'a>(outcome: &'a Result<ReservedOutcome, OperationError>, left: &mut usize) -> ReserveBatchResult<'a> {
    match outcome {
        Ok(ReservedOutcome::Granted(granted)) => {
            ReserveBatchResult::Reserved { status: 201, record: Box::new(record_answer::reserved(granted)) }
        }
        Ok(ReservedOutcome::Ended(record)) => {
            let shown = ReplayedRecord::new(record, shown_body(record, left));
            ReserveBatchResult::Replayed { status: 200, record: Box::new(shown) }
        }
        Err(failure) => {
            let error = problem::of_failure(failure);
            ReserveBatchResult::Refused { status: error.status, error: Box::new(error) }
        }
    }
}

fn shown_body<'a>(record: &'a Record, left: &mut usize) -> ShownBody<'a> {
    match record.completion.response.as_ref().map(|response| &response.body) {
        Some(Body::Inline(bytes)) if bytes.len() <= *left => {
            *left -= bytes.len();
            ShownBody::Bytes(bytes)
        }
        Some(Body::Inline(_) | Body::LeftOut(_)) => ShownBody::LeftOut,
        Some(Body::Stored(_)) | None => ShownBody::Reference,
    }
}
