//! `DELETE /retry-tasks/{taskId}`

use http::Method;

use super::parameters::TASK_ID;
use super::task_answer::CANCELLED;
use crate::operations::cancel_task;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::Task;

pub(crate) static ROUTE: Route = Route {
    method: Method::DELETE,
    path: "/retry-tasks/{taskId}",
    id: "cancelTask",
    group: Group::Tasks,
    summary: "Cancel a task",
    description: "Cancels a task. Only the status CANCELLED means that nothing is sent any more. A task \
        that waits is CANCELLED at once. While an attempt is claimed or under way, the answer is IN_FLIGHT with \
        `cancelRequested`: that attempt may still reach the dependency, and no further one is made. The task then ends \
        CANCELLED, or SUCCEEDED if that attempt succeeds.",
    effect: Effect::Writes,
    access: Access::Operate,
    parameters: &[TASK_ID],
    request: None,
    answers: &[
        Answer {
            status: 200,
            description: "The task is CANCELLED: nothing is sent any more.",
            headers: &[],
            content: Content::Json(of::<Task<'static>>),
        },
        Answer {
            status: 202,
            description: "The task is IN_FLIGHT and `cancelRequested` is `true`: the attempt that is claimed or under way \
                may still reach the dependency; no further one is made.",
            headers: &[],
            content: Content::Json(of::<Task<'static>>),
        },
    ],
    problems: &[&kind::TASK_NOT_FOUND, &kind::TASK_ENDED],
    example: Example { target: "/retry-tasks/01932c07-4b70-7f57-a123-456789abcdef", headers: &[], answer: CANCELLED },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let detail = cancel_task(call.app(), call.caller(), call.task_id()?).await?;
    let status = if detail.task.status.is_ended() { 200 } else { 202 };
    let policy = call.app().policy_of(&detail).await;
    Reply::json(status, &Task::full(&detail, &call.app().secrets).with_policy(policy.as_deref()))
}
