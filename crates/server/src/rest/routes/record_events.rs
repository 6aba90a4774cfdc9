//! `POST /inboxes/{consumer}/events`

use http::Method;

use super::event_answer::{self, DUPLICATE};
use super::parameters::CONSUMER;
use crate::operation_error::OperationError;
use crate::operations::{EventOutcome, record_events};
use crate::rest::call::{Call, CallHead};
use crate::rest::problem::{self, Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Document, Effect, Example, Group, Route, of};
use crate::wire::{EventBatch, EventBatchAnswer, EventResult, parse};

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/inboxes/{consumer}/events",
    id: "recordEvents",
    group: Group::Inboxes,
    summary: "Record many events",
    description: "Records up to 1,000 events of a consumer in one durable commit. Each is decided as a single event would be, in order, and has its own \
        result; an id that is not valid does not affect the others. The second occurrence of an event in one batch is a duplicate, \
        or 409 in progress with the mode `begin`.",
    effect: Effect::Writes,
    access: Access::Submit,
    parameters: &[CONSUMER],
    request: Some(Document::Json {
        schema: of::<EventBatch<'static>>,
        is_required: true,
        description: "The events, and how to record them.",
        example: r#"{ "mode": "record", "events": ["evt-1", "evt-2", "evt-1"] }"#,
    }),
    answers: &[Answer {
        status: 200,
        description: "The result of each event.",
        headers: &[],
        content: Content::Json(of::<EventBatchAnswer<'static>>),
    }],
    problems: &[&kind::INVALID_VALUE, &kind::BREAKS_STANDARD],
    example: Example {
        target: "/inboxes/billing/events",
        headers: &[],
        answer: r#"{
  "results": [
    {
      "eventId": "evt-1",
      "status": 201,
      "event": { "outcome": "new", "executionId": "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2", "epoch": 1 }
    },
    {
      "eventId": "evt-2",
      "status": 201,
      "event": { "outcome": "new", "executionId": "5f0c6f3a-2f4e-4a1b-9a53-0d3c5b7e9f10", "epoch": 1 }
    },
    { "eventId": "evt-1", "status": 200, "event": { "outcome": "duplicate" } }
  ]
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let consumer = call.consumer()?;
    let limit = call.app().limits.batch_bytes;
    let (bytes, CallHead { context, caller, .. }) = call.read_json(limit).await?;
    let batch: EventBatch<'_> = parse(&bytes)?;
    let is_begun = batch.mode.as_deref() == Some("begin");
    let outcomes = record_events(&context.app, &caller, &consumer, &batch).await?;
    let results = batch.events.iter().zip(&outcomes).map(|(id, outcome)| result(id, outcome, is_begun)).collect();
    Reply::json(200, &EventBatchAnswer { results })
}

fn result<'a>(event_id: &'a str, outcome: &Result<EventOutcome, OperationError>, is_begun: bool) -> EventResult<'a> {
    match outcome {
        Ok(EventOutcome::New(granted)) => {
            EventResult::New { event_id, status: 201, event: Box::new(event_answer::new_event(granted, is_begun)) }
        }
        Ok(EventOutcome::Duplicate) => EventResult::Duplicate { event_id, status: 200, event: DUPLICATE },
        Err(failure) => {
            let error = problem::of_failure(failure);
            EventResult::Refused { event_id, status: error.status, error: Box::new(error) }
        }
    }
}
