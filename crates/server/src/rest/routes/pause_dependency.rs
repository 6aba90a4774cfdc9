//! `POST /dependencies/{dependency}/pause`

use http::Method;

use super::dependency_answer::{self, PAUSED};
use super::parameters::DEPENDENCY;
use crate::operations::pause_dependency;
use crate::rest::call::{Call, CallHead};
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Document, Effect, Example, Group, Route, of};
use crate::wire::{PauseInput, ShownDependency, parse};

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/dependencies/{dependency}/pause",
    id: "pauseDependency",
    group: Group::Dependencies,
    summary: "Pause a dependency",
    description: "Sends nothing to a dependency until it is resumed, on all nodes. Attempts in flight end as usual. Tasks that wait lose no \
        attempts, but their time budget goes on. The dependency may have no task yet.",
    effect: Effect::Writes,
    access: Access::Operate,
    parameters: &[DEPENDENCY],
    request: Some(Document::Json {
        schema: of::<PauseInput<'static>>,
        is_required: false,
        description: "Why it is paused; may be left out.",
        example: r#"{ "reason": "maintenance until noon" }"#,
    }),
    answers: &[Answer {
        status: 200,
        description: "The dependency, paused.",
        headers: &[],
        content: Content::Json(of::<ShownDependency<'static>>),
    }],
    problems: &[&kind::DEPENDENCY_NOT_FOUND, &kind::TOO_MANY_CONTROLS, &kind::INVALID_VALUE],
    example: Example { target: "/dependencies/https%3A%2F%2Fapi.example.com/pause", headers: &[], answer: PAUSED },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let (dependency, limit) = (call.dependency()?, call.app().limits.document_bytes);
    let (bytes, CallHead { context, caller, .. }) = call.read_optional_json(limit).await?;
    let input: PauseInput<'_> = bytes.as_deref().map(parse).transpose()?.unwrap_or_default();
    let report = pause_dependency(&context.app, &caller, dependency, input.reason.as_deref()).await?;
    dependency_answer::reply(&context.app, &report)
}
