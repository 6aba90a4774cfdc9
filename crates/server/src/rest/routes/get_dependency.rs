//! `GET /dependencies/{dependency}`

use http::Method;

use super::dependency_answer::OPEN;
use super::parameters::DEPENDENCY;
use crate::operations::get_dependency;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::ShownDependency;

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/dependencies/{dependency}",
    id: "getDependency",
    group: Group::Dependencies,
    summary: "Show a dependency",
    description: "What holds the tasks of a dependency back, as this node sees it: the circuit breaker, the retry budget, the limit of \
        attempts in flight, and what operators have set; and how many of its tasks are pending, counted up to 100,000. Over a shared store every node has its own breaker, budget and limit; pauses \
        and limits that operators set apply to all.",
    effect: Effect::Reads,
    access: Access::Read,
    parameters: &[DEPENDENCY],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The dependency.",
        headers: &[],
        content: Content::Json(of::<ShownDependency<'static>>),
    }],
    problems: &[&kind::DEPENDENCY_NOT_FOUND],
    example: Example { target: "/dependencies/https%3A%2F%2Fapi.example.com", headers: &[], answer: OPEN },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let app = call.app();
    let (report, backlog) = get_dependency(app, call.caller(), call.dependency()?).await?;
    let shown = ShownDependency::new(&report, app.engine.guard_settings(), app.engine.now());
    Reply::json(200, &shown.with_backlog(backlog))
}
