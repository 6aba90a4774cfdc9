//! `POST /alerts/silences`

use http::Method;

use crate::operations::add_silence;
use crate::rest::call::{Call, CallHead};
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Document, Effect, Example, Group, Route, of};
use crate::wire::{ShownSilence, SilenceInput, parse};

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/alerts/silences",
    id: "addSilence",
    group: Group::Alerts,
    summary: "Silence alerts",
    description: "Keeps alerts from the sinks of all nodes until a time. They are still listed and logged, and sinks are told that an alert \
        is over which they knew before. At most 100 silences at a time.",
    effect: Effect::Writes,
    access: Access::Operate,
    parameters: &[],
    request: Some(Document::Json {
        schema: of::<SilenceInput<'static>>,
        is_required: true,
        description: "What to silence, and for how long.",
        example: r#"{ "rule": "breaker-open", "dependency": "https://api.example.com", "forMs": 3600000, "reason": "planned maintenance" }"#,
    }),
    answers: &[Answer {
        status: 201,
        description: "The silence.",
        headers: &[],
        content: Content::Json(of::<ShownSilence<'static>>),
    }],
    problems: &[&kind::INVALID_VALUE, &kind::TOO_MANY_SILENCES],
    example: Example {
        target: "/alerts/silences",
        headers: &[],
        answer: r#"{
  "silenceId": "6f1c3c1e-6c2a-4d55-9d0e-1f0a4c6d2b11",
  "rule": "breaker-open",
  "dependency": "https://api.example.com",
  "reason": "planned maintenance",
  "by": "local",
  "at": 1731600000000,
  "until": 1731603600000
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let limit = call.app().limits.document_bytes;
    let (bytes, CallHead { context, caller, .. }) = call.read_json(limit).await?;
    let input: SilenceInput<'_> = parse(&bytes)?;
    let silence = add_silence(&context.app, &caller, input).await?;
    Reply::json(201, &ShownSilence::new(&silence))
}
