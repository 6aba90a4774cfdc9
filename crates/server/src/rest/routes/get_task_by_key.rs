//! `GET /retry-tasks/by-key/{key}`

use http::Method;

use super::parameters::KEY;
use super::task_answer::{self, WAITING};
use crate::operations::get_task_by_key;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::Task;

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/retry-tasks/by-key/{key}",
    id: "getTaskByKey",
    group: Group::Tasks,
    summary: "Show the task with a key",
    description: "The task that was accepted with this idempotency key, as when it is asked for by its id.",
    effect: Effect::Reads,
    access: Access::Read,
    parameters: &[KEY],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The task.",
        headers: &[],
        content: Content::Json(of::<Task<'static>>),
    }],
    problems: &[&kind::INVALID_KEY, &kind::TASK_NOT_FOUND],
    example: Example { target: "/retry-tasks/by-key/order-1234", headers: &[], answer: WAITING },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let key = call.idempotency_key()?;
    let detail = get_task_by_key(call.app(), call.caller(), key).await?;
    Reply::json(200, &task_answer::shown(call.app(), &detail).await)
}
