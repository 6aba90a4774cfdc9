//! `GET /retry-tasks/{taskId}`

use http::Method;

use super::parameters::{PREFER, PREFERENCE_APPLIED, TASK_ID};
use super::task_answer::{self, WAITING};
use crate::operations::{await_task, get_task};
use crate::rest::call::Call;
use crate::rest::prefer;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::Task;

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/retry-tasks/{taskId}",
    id: "getTask",
    group: Group::Tasks,
    summary: "Show a task",
    description: "A task with its status, its attempts, the time of the next one, what it waits for, the last error and, once it has ended, the \
        answer of the dependency. Secrets in headers and URLs are shown as `***`.",
    effect: Effect::Reads,
    access: Access::Read,
    parameters: &[TASK_ID, PREFER],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The task. With `Prefer: wait`: as soon as it has ended, or its current state when the wait is over.",
        headers: &[PREFERENCE_APPLIED],
        content: Content::Json(of::<Task<'static>>),
    }],
    problems: &[&kind::TASK_NOT_FOUND],
    example: Example { target: "/retry-tasks/01932c07-4b70-7f57-a123-456789abcdef", headers: &[], answer: WAITING },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let (app, caller, id) = (call.app(), call.caller(), call.task_id()?);
    let Some(within) = prefer::wait(&call.parts.headers, app.limits.longest_wait) else {
        return Reply::json(200, &task_answer::shown(app, &get_task(app, caller, id).await?).await);
    };
    let detail = await_task(app, caller, id, within, call.context.shutdown.started()).await?;
    let applied = format!("wait={}", within.as_secs());
    Ok(Reply::json(200, &task_answer::shown(app, &detail).await)?.with(prefer::PREFERENCE_APPLIED, applied))
}
