//! `GET /problems` and `GET /problems/{name}`: what the types of problem details mean.

use http::Method;

use crate::rest::call::Call;
use crate::rest::docs;
use crate::rest::problem::{Kind, Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Parameter, ParameterLocation, Route, TEXT};

pub(crate) static LIST: Route = Route {
    method: Method::GET,
    path: "/problems",
    id: "problems",
    group: Group::Service,
    summary: "Every type of problem",
    description: "The types of problem details that this API answers with, as a page.",
    effect: Effect::Nothing,
    access: Access::Public,
    parameters: &[],
    request: None,
    answers: &[Answer { status: 200, description: "The page.", headers: &[], content: Content::Html }],
    problems: &[],
    example: Example { target: "/problems", headers: &[], answer: "" },
    handler: |_| Box::pin(async { Ok(Reply::html(docs::problem_list())) }),
};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/problems/{name}",
    id: "problem",
    group: Group::Service,
    summary: "One type of problem",
    description: "The meaning of a type of problem details, and what to do about it. The `type` of every problem is the path of its page.",
    effect: Effect::Nothing,
    access: Access::Public,
    parameters: &[Parameter {
        name: "name",
        location: ParameterLocation::Path,
        description: "The last part of the problem's `type`.",
        schema: TEXT,
    }],
    request: None,
    answers: &[Answer { status: 200, description: "The page.", headers: &[], content: Content::Html }],
    problems: &[&kind::NOT_FOUND],
    example: Example { target: "/problems/idempotency-key-reused", headers: &[], answer: "" },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let kind = Kind::named(call.parameter("name")).ok_or(Refusal::NoSuchPath)?;
    Ok(Reply::html(docs::problem_page(kind)))
}
