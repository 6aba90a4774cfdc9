//! `POST /retry-tasks/{taskId}/retry-now`

use http::Method;

use super::parameters::TASK_ID;
use super::task_answer::{self, WAITING};
use crate::operations::retry_now;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::Task;

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/retry-tasks/{taskId}/retry-now",
    id: "retryNow",
    group: Group::Tasks,
    summary: "Bring a waiting task forward",
    description: "Makes a waiting task due now, instead of when its backoff ends. The attempt counts towards \
        `maxAttempts`. A task whose next attempt is already claimed and waits for its due time is IN_FLIGHT in the answer: \
        that attempt starts now.",
    effect: Effect::Writes,
    access: Access::Operate,
    parameters: &[TASK_ID],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The task is due now: PENDING, or IN_FLIGHT if its attempt was already claimed.",
        headers: &[],
        content: Content::Json(of::<Task<'static>>),
    }],
    problems: &[&kind::TASK_NOT_FOUND, &kind::TASK_ENDED, &kind::TASK_IN_FLIGHT],
    example: Example {
        target: "/retry-tasks/01932c07-4b70-7f57-a123-456789abcdef/retry-now",
        headers: &[],
        answer: WAITING,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let detail = retry_now(call.app(), call.caller(), call.task_id()?).await?;
    Reply::json(200, &task_answer::shown(call.app(), &detail).await)
}
