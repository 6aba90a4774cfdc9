//! `POST /dependencies/{dependency}/reset`

use http::Method;

use super::dependency_answer::{self, CLOSED};
use super::parameters::DEPENDENCY;
use crate::operations::reset_guards;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::ShownDependency;

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/dependencies/{dependency}/reset",
    id: "resetGuards",
    group: Group::Dependencies,
    summary: "Reset the guards of a dependency",
    description: "Forgets what the retry budget, the circuit breaker and the adaptive limit of a dependency have counted, on all nodes, as if it had \
        never been called, and closes the breaker. A pause and limits stay.",
    effect: Effect::Writes,
    access: Access::Operate,
    parameters: &[DEPENDENCY],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The dependency with new guards.",
        headers: &[],
        content: Content::Json(of::<ShownDependency<'static>>),
    }],
    problems: &[&kind::DEPENDENCY_NOT_FOUND],
    example: Example { target: "/dependencies/https%3A%2F%2Fapi.example.com/reset", headers: &[], answer: CLOSED },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let report = reset_guards(call.app(), call.caller(), call.dependency()?).await?;
    dependency_answer::reply(call.app(), &report)
}
