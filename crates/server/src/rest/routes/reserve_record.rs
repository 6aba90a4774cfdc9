//! `POST /idempotency-records/{operation}/{key}/reserve`

use std::time::Duration;

use http::Method;

use super::parameters::{KEY, OPERATION, PREFERENCE_APPLIED};
use super::record_answer;
use crate::operations::{check_reservation, reserve_and_wait};
use crate::rest::call::Call;
use crate::rest::prefer;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{
    Access, Answer, AnswerHeader, Content, Document, Effect, Example, Group, Parameter, ParameterLocation, Route, TEXT,
    of,
};
use crate::wire::{ReplayedRecord, ReserveInput, ReservedRecord, parse};

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/idempotency-records/{operation}/{key}/reserve",
    id: "reserveRecord",
    group: Group::Records,
    summary: "Reserve a record",
    description: "Decides which of several callers executes an operation. The first caller gets the record (201): it executes the operation, then \
        completes or fails the record with the `executionId` and `epoch` of this answer. A duplicate of a request that has ended gets the \
        stored result (200). While another execution is under way it is 409. A key of another request is 422. When an owner \
        does not report before its lease ends, the next caller gets the record with a higher epoch, and `previous` says that the outcome of the \
        execution before is unknown. Once this answers, the reservation is durable. The operation `submit-task` is \
        reserved: submit with `POST /retry-tasks`.",
    effect: Effect::Writes,
    access: Access::Submit,
    parameters: &[
        OPERATION,
        KEY,
        Parameter {
            name: "Prefer",
            location: ParameterLocation::Header,
            description: "`wait=N` (RFC 7240): while another execution is under way, wait up to N seconds, at most 30, for its result.",
            schema: TEXT,
        },
    ],
    request: Some(Document::Json {
        schema: of::<ReserveInput<'static>>,
        is_required: true,
        description: "What the key stands for, and how long the execution may take.",
        example: r#"{
  "request": {
    "method": "POST",
    "path": "/payments",
    "contentType": "application/json",
    "bodyJson": { "order": 1234, "amount": "99.50 EUR" },
    "comparison": "json"
  },
  "leaseMs": 60000,
  "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2"
}"#,
    }),
    answers: &[
        Answer {
            status: 201,
            description: "The caller owns the record and executes the operation.",
            headers: &[PREFERENCE_APPLIED],
            content: Content::Json(of::<ReservedRecord>),
        },
        Answer {
            status: 200,
            description: "The operation has ended: its stored result. The caller does not execute it.",
            headers: &[AnswerHeader { name: "Idempotent-Replayed", description: "`true`." }, PREFERENCE_APPLIED],
            content: Content::Json(of::<ReplayedRecord<'static>>),
        },
    ],
    problems: &[
        &kind::INVALID_KEY,
        &kind::INVALID_VALUE,
        &kind::IN_PROGRESS,
        &kind::KEY_REUSED,
        &kind::BREAKS_STANDARD,
        &kind::BODY_NOT_FOUND,
        &kind::NO_BODY_STORAGE,
    ],
    example: Example {
        target: "/idempotency-records/create-payment/order-1234/reserve",
        headers: &["Prefer: wait=10"],
        answer: r#"{
  "outcome": "reserved",
  "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2",
  "epoch": 1,
  "leaseUntil": 1731600060000
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let (operation, key) = call.record_key()?;
    let limit = call.app().limits.submission_bytes();
    let (bytes, head) = call.read_json(limit).await?;
    let app = &*head.context.app;
    let wait = prefer::wait(&head.parts.headers, app.limits.longest_wait);
    let input: ReserveInput<'_> = parse(&bytes)?;
    let reservation = check_reservation(app, &head.caller, operation, &key, &input)?;
    // A caller may wait for 30 s; the document, which may have 6 MiB, is not held meanwhile.
    drop(bytes);
    head.exchange.charge.release_body()?;
    let within = wait.unwrap_or(Duration::ZERO);
    let interrupted = head.context.shutdown.started();
    let outcome = reserve_and_wait(app, reservation, within, interrupted).await?;
    let reply = record_answer::reservation_reply(&head, &outcome).await?;
    let applied = wait.map(|wait| format!("wait={}", wait.as_secs()));
    Ok(applied.into_iter().fold(reply, |reply, applied| reply.with(prefer::PREFERENCE_APPLIED, applied)))
}
