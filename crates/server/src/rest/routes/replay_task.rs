//! `POST /retry-tasks/{taskId}/replay`

use http::Method;

use super::parameters::TASK_ID;
use super::task_answer::{self, REPLAYED};
use crate::operations::replay_task;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::Task;

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/retry-tasks/{taskId}/replay",
    id: "replayTask",
    group: Group::Tasks,
    summary: "Replay a dead letter",
    description: "Starts a task that ended FAILED or EXHAUSTED again: the same task, with the same request and the same \
        idempotency key, due now. It begins a new run with its full `maxAttempts` and time budget. Attempt numbers continue, \
        and the attempts of earlier runs stay in the log.",
    effect: Effect::Writes,
    access: Access::Operate,
    parameters: &[TASK_ID],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The task is due now, in a new run.",
        headers: &[],
        content: Content::Json(of::<Task<'static>>),
    }],
    problems: &[&kind::TASK_NOT_FOUND, &kind::TASK_NOT_DEAD, &kind::POLICY_GONE],
    example: Example {
        target: "/retry-tasks/01932c07-4b70-7f57-a123-456789abcdef/replay",
        headers: &[],
        answer: REPLAYED,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let detail = replay_task(call.app(), call.caller(), call.task_id()?).await?;
    Reply::json(200, &task_answer::shown(call.app(), &detail).await)
}
