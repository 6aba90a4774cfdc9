//! `PUT /dependencies/{dependency}/limits`

use http::Method;

use super::dependency_answer::{self, LIMITED};
use super::parameters::DEPENDENCY;
use crate::operations::put_limits;
use crate::rest::call::{Call, CallHead};
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Document, Effect, Example, Group, Route, of};
use crate::wire::{LimitsInput, ShownDependency, parse};

pub(crate) static ROUTE: Route = Route {
    method: Method::PUT,
    path: "/dependencies/{dependency}/limits",
    id: "putLimits",
    group: Group::Dependencies,
    summary: "Set the limits of a dependency",
    description: "Sets the limit of attempts in flight for a dependency, for each node: a fixed `concurrency`, or bounds for the adaptive limit. \
        It replaces what was set before; `{}` removes it. The dependency may have no task yet.",
    effect: Effect::Writes,
    access: Access::Operate,
    parameters: &[DEPENDENCY],
    request: Some(Document::Json {
        schema: of::<LimitsInput<'static>>,
        is_required: true,
        description: "The limits.",
        example: r#"{ "concurrency": 5 }"#,
    }),
    answers: &[Answer {
        status: 200,
        description: "The dependency with its new limits.",
        headers: &[],
        content: Content::Json(of::<ShownDependency<'static>>),
    }],
    problems: &[&kind::DEPENDENCY_NOT_FOUND, &kind::TOO_MANY_CONTROLS, &kind::INVALID_VALUE],
    example: Example { target: "/dependencies/https%3A%2F%2Fapi.example.com/limits", headers: &[], answer: LIMITED },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let (dependency, limit) = (call.dependency()?, call.app().limits.document_bytes);
    let (bytes, CallHead { context, caller, .. }) = call.read_json(limit).await?;
    let input: LimitsInput<'_> = parse(&bytes)?;
    let report = put_limits(&context.app, &caller, dependency, input).await?;
    dependency_answer::reply(&context.app, &report)
}
