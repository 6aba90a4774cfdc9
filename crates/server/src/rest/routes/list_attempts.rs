//! `GET /retry-tasks/{taskId}/attempts`

use http::Method;

use super::parameters::{CURSOR, LIMIT, TASK_ID};
use crate::operations::list_attempts;
use crate::rest::call::Call;
use crate::rest::page::{Addition, Page};
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::{AttemptList, AttemptNumber, Cursor, ShownAttempt};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/retry-tasks/{taskId}/attempts",
    id: "listAttempts",
    group: Group::Tasks,
    summary: "Show a task's attempts",
    description: "The attempt log, oldest first: every attempt that has ended, its outcome and the wait after it. The log has \
        the attempts of all runs: `attemptNumber` continues when a task is replayed, `attemptInRun` starts again at 1. The \
        outcome `unknown` is an attempt that a crash interrupted: it may or may not have been delivered. A page ends after `limit` attempts or 1 MiB.",
    effect: Effect::Reads,
    access: Access::Read,
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

/// The most attempts that are read at once.
const MOST_READ: usize = 100;

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let limits = &call.app().limits;
    let most = limits.page(call.query.limit(limits.page_most)?);
    let mut after = call.query.cursor::<AttemptNumber>()?.map_or(0, |last| last.0);
    let id = call.task_id()?;
    let mut page = Page::new("attempts", limits.page_bytes);
    let next = 'read: loop {
        let wanted = MOST_READ.min(most - page.items());
        let read = list_attempts(call.app(), call.caller(), id, after, Some(wanted)).await?;
        for attempt in &read.attempts {
            if let Addition::PageFull = page.add(&ShownAttempt::new(id, read.max_attempts, attempt))? {
                break 'read Some(after);
            }
            after = attempt.number;
        }
        call.exchange.charge.hold(page.bytes())?;
        if read.next.is_none() || page.items() >= most {
            break read.next;
        }
    };
    page.end(next.map(|last| AttemptNumber(last).to_cursor()))?;
    Ok(page.into_reply())
}
