//! `POST /idempotency-records/{operation}/{key}/renew`

use http::Method;

use super::parameters::{KEY, OPERATION, RECORD_ETAG};
use super::record_answer::{self, UNDER_WAY};
use crate::operations::renew_record;
use crate::rest::call::{Call, CallHead};
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Document, Effect, Example, Group, Route, of};
use crate::wire::{RenewInput, ShownRecord, parse};

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/idempotency-records/{operation}/{key}/renew",
    id: "renewRecord",
    group: Group::Records,
    summary: "Renew a lease",
    description: "Gives the execution more time: its lease ends `leaseMs` from now. It also works after the lease has ended, as long as no other execution \
        has taken over.",
    effect: Effect::Writes,
    access: Access::Submit,
    parameters: &[OPERATION, KEY],
    request: Some(Document::Json {
        schema: of::<RenewInput<'static>>,
        is_required: true,
        description: "The owner and the new lease.",
        example: r#"{
  "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2",
  "epoch": 1,
  "leaseMs": 60000
}"#,
    }),
    answers: &[Answer {
        status: 200,
        description: "The record with its new lease.",
        headers: &[RECORD_ETAG],
        content: Content::Json(of::<ShownRecord<'static>>),
    }],
    problems: &[&kind::INVALID_KEY, &kind::INVALID_VALUE, &kind::RECORD_NOT_FOUND, &kind::FENCED, &kind::ALREADY_ENDED],
    example: Example {
        target: "/idempotency-records/create-payment/order-1234/renew",
        headers: &[],
        answer: UNDER_WAY,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let (operation, key) = call.record_key()?;
    let limit = call.app().limits.document_bytes;
    let (bytes, CallHead { context, caller, .. }) = call.read_json(limit).await?;
    let input: RenewInput<'_> = parse(&bytes)?;
    let changed = renew_record(&context.app, &caller, operation, &key, &input).await?;
    record_answer::changed_reply(&context.app, &changed)
}
