//! `POST /dependencies/{dependency}/resume`

use http::Method;

use super::dependency_answer::{self, CLOSED};
use super::parameters::DEPENDENCY;
use crate::operations::resume_dependency;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::ShownDependency;

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/dependencies/{dependency}/resume",
    id: "resumeDependency",
    group: Group::Dependencies,
    summary: "Resume a dependency",
    description: "Ends the pause of a dependency, on all nodes. If it is not paused, nothing changes.",
    effect: Effect::Writes,
    access: Access::Operate,
    parameters: &[DEPENDENCY],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The dependency, not paused.",
        headers: &[],
        content: Content::Json(of::<ShownDependency<'static>>),
    }],
    problems: &[&kind::DEPENDENCY_NOT_FOUND],
    example: Example { target: "/dependencies/https%3A%2F%2Fapi.example.com/resume", headers: &[], answer: CLOSED },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let report = resume_dependency(call.app(), call.caller(), call.dependency()?).await?;
    dependency_answer::reply(call.app(), &report)
}
