//! `POST /retry-tasks/batch`

use http::Method;

use super::parameters::{BAGGAGE, TRACEPARENT, TRACESTATE};
use crate::operation_error::OperationError;
use crate::operations::{Acceptance, Accepted, submit_batch};
use crate::rest::call::{Call, CallHead};
use crate::rest::idempotency_key::IDEMPOTENCY_KEY;
use crate::rest::problem::{self, Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Document, Effect, Example, Group, Route, of};
use crate::rest::trace_context;
use crate::wire::{Batch, BatchAnswer, BatchResult, Secrets, Submission, Task, parse};

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/retry-tasks/batch",
    id: "submitBatch",
    group: Group::Tasks,
    summary: "Submit many tasks",
    description: "Accepts up to 1,000 tasks in one durable commit. Each item is validated as a single submission \
        would be, and has its own result, in the same order; an invalid item does not affect the others. Each item has its \
        own `idempotencyKey`: an `Idempotency-Key` header is refused.",
    effect: Effect::Writes,
    access: Access::Submit,
    parameters: &[TRACEPARENT, TRACESTATE, BAGGAGE],
    request: Some(Document::Json {
        schema: of::<Batch<'static>>,
        is_required: true,
        description: "The tasks.",
        example: r#"{
  "tasks": [
    { "targetUrl": "https://api.example.com/a", "body": "one", "idempotencyKey": "a-1" },
    { "targetUrl": "not a url", "idempotencyKey": "a-2" }
  ]
}"#,
    }),
    answers: &[Answer {
        status: 200,
        description: "The result of each task.",
        headers: &[],
        content: Content::Json(of::<BatchAnswer<'static>>),
    }],
    problems: &[&kind::INVALID_VALUE],
    example: Example {
        target: "/retry-tasks/batch",
        headers: &[],
        answer: r#"{
  "results": [
    { "status": 201, "task": { "taskId": "01932c07-4b70-7f57-a123-456789abcdef", "status": "PENDING" } },
    {
      "status": 422,
      "error": {
        "type": "/problems/invalid-value",
        "title": "A value is invalid",
        "status": 422,
        "detail": "tasks[1].targetUrl must not contain spaces",
        "field": "tasks[1].targetUrl",
        "errors": [{ "field": "tasks[1].targetUrl", "message": "must not contain spaces" }]
      }
    }
  ]
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    if call.parts.headers.contains_key(IDEMPOTENCY_KEY) {
        return Err(Refusal::parameter("Idempotency-Key", "must not be given: each task has its own idempotencyKey"));
    }
    let limit = call.app().limits.batch_bytes;
    let (bytes, CallHead { context, caller, parts, .. }) = call.read_json(limit).await?;
    let batch: Batch<'_> = parse(&bytes)?;
    let items = batch.tasks.iter().map(|item| parse::<Submission<'_>>(item.get().as_bytes())).collect();
    let outcomes = submit_batch(&context.app, &caller, items, &trace_context::of(&parts.headers)).await?;
    let results = outcomes.iter().map(|outcome| result(outcome, &context.app.secrets)).collect();
    Reply::json(200, &BatchAnswer { results })
}

fn result<'a>(outcome: &'a Result<Accepted, OperationError>, secrets: &'a Secrets) -> BatchResult<'a> {
    match outcome {
        Ok(Accepted { detail, policy, how, key_generated, answer_left_out, findings, ignored_headers }) => {
            let status = if *how == Acceptance::Created { 201 } else { 200 };
            let (findings, ignored_headers) = (findings.clone(), ignored_headers.clone());
            let shown = if *answer_left_out { Task::summary(detail, secrets) } else { Task::full(detail, secrets) };
            let shown = shown.with_policy(policy.as_deref());
            let task = Task { idempotency_key_generated: *key_generated, findings, ignored_headers, ..shown };
            BatchResult::Accepted { status, task: Box::new(task) }
        }
        Err(failure) => {
            let error = problem::of_failure(failure);
            BatchResult::Refused { status: error.status, error: Box::new(error) }
        }
    }
}
