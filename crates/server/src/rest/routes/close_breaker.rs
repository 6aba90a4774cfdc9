//! `POST /dependencies/{dependency}/close`

use http::Method;

use super::dependency_answer::{self, CLOSED};
use super::parameters::DEPENDENCY;
use crate::operations::close_breaker;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::ShownDependency;

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/dependencies/{dependency}/close",
    id: "closeBreaker",
    group: Group::Dependencies,
    summary: "Close the circuit breaker of a dependency",
    description: "Closes the circuit breaker of a dependency on all nodes, whether it was opened by hand or opened by itself. The \
        dependency then gets few calls at first, and more as they succeed. If it keeps failing, the breaker opens again.",
    effect: Effect::Writes,
    access: Access::Operate,
    parameters: &[DEPENDENCY],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The dependency with its breaker closed.",
        headers: &[],
        content: Content::Json(of::<ShownDependency<'static>>),
    }],
    problems: &[&kind::DEPENDENCY_NOT_FOUND],
    example: Example { target: "/dependencies/https%3A%2F%2Fapi.example.com/close", headers: &[], answer: CLOSED },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let report = close_breaker(call.app(), call.caller(), call.dependency()?).await?;
    dependency_answer::reply(call.app(), &report)
}
