//! `POST /idempotency-records/{operation}/{key}/fail`

use http::Method;

use super::parameters::{KEY, OPERATION, RECORD_ETAG};
use super::record_answer::{self, FAILED};
use crate::operations::fail_record;
use crate::rest::call::{Call, CallHead};
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Document, Effect, Example, Group, Route, of};
use crate::wire::{FailInput, ShownRecord, parse};

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/idempotency-records/{operation}/{key}/fail",
    id: "failRecord",
    group: Group::Records,
    summary: "Fail a record",
    description: "Reports that the execution failed. If it is `retryable`, the next caller executes the operation again and is told of this execution. Otherwise \
        the operation failed for good, and duplicates get this result. Repeating it with the same result is safe.",
    effect: Effect::Writes,
    access: Access::Submit,
    parameters: &[OPERATION, KEY],
    request: Some(Document::Json {
        schema: of::<FailInput<'static>>,
        is_required: true,
        description: "The owner and the failure.",
        example: r#"{
  "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2",
  "epoch": 1,
  "retryable": false,
  "response": { "status": 402, "bodyJson": { "reason": "card declined" } }
}"#,
    }),
    answers: &[Answer {
        status: 200,
        description: "The record, FAILED_RETRYABLE or FAILED_FINAL.",
        headers: &[RECORD_ETAG],
        content: Content::Json(of::<ShownRecord<'static>>),
    }],
    problems: &[&kind::INVALID_KEY, &kind::INVALID_VALUE, &kind::RECORD_NOT_FOUND, &kind::FENCED, &kind::ALREADY_ENDED],
    example: Example { target: "/idempotency-records/create-payment/order-1234/fail", headers: &[], answer: FAILED },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let (operation, key) = call.record_key()?;
    let limit = call.app().limits.submission_bytes();
    let (bytes, CallHead { context, caller, .. }) = call.read_json(limit).await?;
    let input: FailInput<'_> = parse(&bytes)?;
    let changed = fail_record(&context.app, &caller, operation, &key, input).await?;
    record_answer::changed_reply(&context.app, &changed)
}
