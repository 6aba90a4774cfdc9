//! `POST /inboxes/{consumer}/events/{eventId}/release`

use http::Method;

use super::event_answer::{self, RELEASED};
use super::parameters::{CONSUMER, EVENT_ID};
use crate::operations::release_event;
use crate::rest::call::{Call, CallHead};
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Document, Effect, Example, Group, Route, of};
use crate::wire::{OwnerInput, ShownEvent, parse};

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/inboxes/{consumer}/events/{eventId}/release",
    id: "releaseEvent",
    group: Group::Inboxes,
    summary: "Release an event",
    description: "Gives the processing of an event up: it counts as not seen. Repeating it is safe.",
    effect: Effect::Writes,
    access: Access::Submit,
    parameters: &[CONSUMER, EVENT_ID],
    request: Some(Document::Json {
        schema: of::<OwnerInput<'static>>,
        is_required: true,
        description: "The execution that began it.",
        example: r#"{ "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2", "epoch": 1 }"#,
    }),
    answers: &[Answer {
        status: 200,
        description: "The event, RELEASED.",
        headers: &[],
        content: Content::Json(of::<ShownEvent<'static>>),
    }],
    problems: &[&kind::INVALID_VALUE, &kind::RECORD_NOT_FOUND, &kind::FENCED, &kind::ALREADY_ENDED],
    example: Example { target: "/inboxes/billing/events/evt-88/release", headers: &[], answer: RELEASED },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let (consumer, event) = call.event()?;
    let limit = call.app().limits.document_bytes;
    let (bytes, CallHead { context, caller, .. }) = call.read_json(limit).await?;
    let input: OwnerInput<'_> = parse(&bytes)?;
    let record = release_event(&context.app, &caller, consumer.clone(), event.clone(), &input).await?;
    event_answer::changed_reply(&consumer, &event, &record)
}
