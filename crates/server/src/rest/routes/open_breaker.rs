//! `POST /dependencies/{dependency}/open`

use http::Method;

use super::dependency_answer::{self, HELD_OPEN};
use super::parameters::DEPENDENCY;
use crate::operations::open_breaker;
use crate::rest::call::{Call, CallHead};
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Document, Effect, Example, Group, Route, of};
use crate::wire::{OpenInput, ShownDependency, parse};

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/dependencies/{dependency}/open",
    id: "openBreaker",
    group: Group::Dependencies,
    summary: "Open the circuit breaker of a dependency",
    description: "Opens the circuit breaker of a dependency by hand, on all nodes: nothing is sent until `untilMs`, for `forMs`, or else until it is \
        closed. At its end a few calls test the dependency, as with a breaker that opened by itself. The dependency may have no task yet.",
    effect: Effect::Writes,
    access: Access::Operate,
    parameters: &[DEPENDENCY],
    request: Some(Document::Json {
        schema: of::<OpenInput<'static>>,
        is_required: false,
        description: "For how long and why; may be left out.",
        example: r#"{ "reason": "maintenance", "forMs": 600000 }"#,
    }),
    answers: &[Answer {
        status: 200,
        description: "The dependency with its breaker open.",
        headers: &[],
        content: Content::Json(of::<ShownDependency<'static>>),
    }],
    problems: &[&kind::DEPENDENCY_NOT_FOUND, &kind::BREAKER_OFF, &kind::TOO_MANY_CONTROLS, &kind::INVALID_VALUE],
    example: Example { target: "/dependencies/https%3A%2F%2Fapi.example.com/open", headers: &[], answer: HELD_OPEN },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let (dependency, limit) = (call.dependency()?, call.app().limits.document_bytes);
    let (bytes, CallHead { context, caller, .. }) = call.read_optional_json(limit).await?;
    let input: OpenInput<'_> = bytes.as_deref().map(parse).transpose()?.unwrap_or_default();
    let report = open_breaker(&context.app, &caller, dependency, input).await?;
    dependency_answer::reply(&context.app, &report)
}
