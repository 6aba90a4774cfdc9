//! `POST /inboxes/{consumer}/events/{eventId}`

use http::Method;

use super::event_answer::{self, DUPLICATE};
use super::parameters::{CONSUMER, EVENT_ID};
use crate::operations::{EventOutcome, record_event};
use crate::rest::call::{Call, CallHead};
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Document, Effect, Example, Group, Route, of};
use crate::wire::{DuplicateEvent, EventInput, NewEvent, parse};

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/inboxes/{consumer}/events/{eventId}",
    id: "recordEvent",
    group: Group::Inboxes,
    summary: "Record an event",
    description: "Decides whether a consumer has seen an event before. With the mode `record` a new event counts as seen at once: the consumer processes \
        it at most once. If the answer is lost, only a call with the same `executionId` is told `new` again, so give one. With `begin` it counts as seen once it is confirmed; if that does not happen before its lease ends, the next \
        delivery begins again: the consumer processes it at least once, and never two executions at a time.",
    effect: Effect::Writes,
    access: Access::Submit,
    parameters: &[CONSUMER, EVENT_ID],
    request: Some(Document::Json {
        schema: of::<EventInput<'static>>,
        is_required: false,
        description: "How to record it.",
        example: r#"{ "mode": "begin", "leaseMs": 60000, "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2" }"#,
    }),
    answers: &[
        Answer {
            status: 201,
            description: "The event is new: process it.",
            headers: &[],
            content: Content::Json(of::<NewEvent>),
        },
        Answer {
            status: 200,
            description: "The event was seen before: skip it.",
            headers: &[],
            content: Content::Json(of::<DuplicateEvent>),
        },
    ],
    problems: &[&kind::INVALID_VALUE, &kind::IN_PROGRESS, &kind::BREAKS_STANDARD],
    example: Example {
        target: "/inboxes/billing/events/evt-88",
        headers: &[],
        answer: r#"{
  "outcome": "new",
  "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2",
  "epoch": 1,
  "leaseUntil": 1731600060000
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let (consumer, event) = call.event()?;
    let limit = call.app().limits.document_bytes;
    let (bytes, CallHead { context, caller, .. }) = call.read_optional_json(limit).await?;
    let input: EventInput<'_> = bytes.as_deref().map_or_else(|| Ok(EventInput::default()), parse)?;
    let is_begun = input.mode.as_deref() == Some("begin");
    match record_event(&context.app, &caller, consumer, event, &input).await? {
        EventOutcome::New(granted) => Reply::json(201, &event_answer::new_event(&granted, is_begun)),
        EventOutcome::Duplicate => Reply::json(200, &DUPLICATE),
    }
}
