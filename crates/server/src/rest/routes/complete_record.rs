//! `POST /idempotency-records/{operation}/{key}/complete`

use http::Method;

use super::parameters::{KEY, OPERATION, RECORD_ETAG};
use super::record_answer::{self, COMPLETED};
use crate::operations::complete_record;
use crate::rest::call::{Call, CallHead};
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Document, Effect, Example, Group, Route, of};
use crate::wire::{CompleteInput, ShownRecord, parse};

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/idempotency-records/{operation}/{key}/complete",
    id: "completeRecord",
    group: Group::Records,
    summary: "Complete a record",
    description: "Reports that the operation took place, with the result that duplicates get: a response, a reference to the object that was made, both, or neither. \
        Only the owner may do so; it may also after its lease has ended, as long as no other execution has taken over. Repeating it with the same \
        result is safe.",
    effect: Effect::Writes,
    access: Access::Submit,
    parameters: &[OPERATION, KEY],
    request: Some(Document::Json {
        schema: of::<CompleteInput<'static>>,
        is_required: true,
        description: "The owner and the result.",
        example: r#"{
  "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2",
  "epoch": 1,
  "response": {
    "status": 201,
    "headers": { "content-type": "application/json" },
    "bodyJson": { "payment": "pay_123" }
  },
  "resourceType": "payment",
  "resourceId": "pay_123"
}"#,
    }),
    answers: &[Answer {
        status: 200,
        description: "The record, SUCCEEDED. The body of its response is not repeated.",
        headers: &[RECORD_ETAG],
        content: Content::Json(of::<ShownRecord<'static>>),
    }],
    problems: &[&kind::INVALID_KEY, &kind::INVALID_VALUE, &kind::RECORD_NOT_FOUND, &kind::FENCED, &kind::ALREADY_ENDED],
    example: Example {
        target: "/idempotency-records/create-payment/order-1234/complete",
        headers: &[],
        answer: COMPLETED,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let (operation, key) = call.record_key()?;
    let limit = call.app().limits.submission_bytes();
    let (bytes, CallHead { context, caller, .. }) = call.read_json(limit).await?;
    let input: CompleteInput<'_> = parse(&bytes)?;
    let changed = complete_record(&context.app, &caller, operation, &key, input).await?;
    record_answer::changed_reply(&context.app, &changed)
}
