//! `GET /retry-tasks/{taskId}/attempts`

use http::Method;

use super::parameters::{CURSOR, LIMIT, TASK_ID};
use crate::operations::list_attempts;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::{AttemptList, AttemptNumber, Cursor, ShownAttempt};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/retry-tasks/{taskId}/attempts",
    id: "listAttempts",
    group: Group::Tasks,
    summary: "Show a task's attempts",
    description: "The attempt log, oldest first: every send that has ended, what it meant and how long the task then \
        waited. The log has the attempts of all runs: `attemptNumber` goes on growing when a task is replayed, \
        `attemptInRun` begins again at 1. The outcome `unknown` is an attempt that a crash cut off: it may have been \
        delivered or not.",
    effect: Effect::Reads,
    parameters: &[TASK_ID, CURSOR, LIMIT],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "A page of attempts.",
        headers: &[],
        content: Content::Json(of::<AttemptList<'static>>),
    }],
    problems: &[&kind::TASK_NOT_FOUND],
    example: Example {
        target: "/retry-tasks/01932c07-4b70-7f57-a123-456789abcdef/attempts",
        headers: &[],
        answer: r#"{
  "attempts": [
    {
      "taskId": "01932c07-4b70-7f57-a123-456789abcdef",
      "attemptNumber": 7,
      "attemptInRun": 1,
      "maxAttempts": 6,
      "startedAt": 1731603600004,
      "durationMs": 23,
      "outcome": "retryable",
      "responseStatus": 503,
      "errorType": "http-status",
      "errorMessage": "the dependency answered 503",
      "backoffMs": 704
    }
  ],
  "nextCursor": null
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let limit = call.query.limit(call.app().limits.page_most)?;
    let after = call.query.cursor::<AttemptNumber>()?.map_or(0, |last| last.0);
    let id = call.task_id()?;
    let page = list_attempts(call.app(), call.tenant(), id, after, limit).await?;
    let list = AttemptList {
        attempts: page.attempts.iter().map(|attempt| ShownAttempt::new(id, page.max_attempts, attempt)).collect(),
        next_cursor: page.next.map(|last| AttemptNumber(last).to_cursor()),
    };
    Reply::json(200, &list)
}
