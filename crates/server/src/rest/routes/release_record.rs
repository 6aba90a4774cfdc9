//! `POST /idempotency-records/{operation}/{key}/release`

use http::Method;

use super::parameters::{KEY, OPERATION, RECORD_ETAG};
use super::record_answer::{self, RELEASED};
use crate::operations::release_record;
use crate::rest::call::{Call, CallHead};
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Document, Effect, Example, Group, Route, of};
use crate::wire::{OwnerInput, ShownRecord, parse};

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/idempotency-records/{operation}/{key}/release",
    id: "releaseRecord",
    group: Group::Records,
    summary: "Release a record",
    description: "Gives the record up: the execution has done nothing, and the next caller begins as if there had been none. An execution that may have had an \
        effect fails instead. Repeating it is safe.",
    effect: Effect::Writes,
    access: Access::Submit,
    parameters: &[OPERATION, KEY],
    request: Some(Document::Json {
        schema: of::<OwnerInput<'static>>,
        is_required: true,
        description: "The owner.",
        example: r#"{
  "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2",
  "epoch": 1
}"#,
    }),
    answers: &[Answer {
        status: 200,
        description: "The record, RELEASED: it does not exist any more.",
        headers: &[RECORD_ETAG],
        content: Content::Json(of::<ShownRecord<'static>>),
    }],
    problems: &[&kind::INVALID_KEY, &kind::INVALID_VALUE, &kind::RECORD_NOT_FOUND, &kind::FENCED, &kind::ALREADY_ENDED],
    example: Example {
        target: "/idempotency-records/create-payment/order-1234/release",
        headers: &[],
        answer: RELEASED,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let (operation, key) = call.record_key()?;
    let limit = call.app().limits.document_bytes;
    let (bytes, CallHead { context, caller, .. }) = call.read_json(limit).await?;
    let input: OwnerInput<'_> = parse(&bytes)?;
    let changed = release_record(&context.app, &caller, operation, &key, &input).await?;
    record_answer::changed_reply(&context.app, &changed)
}
