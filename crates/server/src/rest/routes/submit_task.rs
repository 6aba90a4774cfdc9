//! `POST /retry-tasks`

use http::Method;
use http::header::{HeaderName, LOCATION};

use super::parameters::{self, BAGGAGE, PREFER, PREFERENCE_APPLIED, TRACEPARENT, TRACESTATE};
use super::task_answer::{self, DELIVERED};
use crate::operations::{Acceptance, Accepted, SubmissionHeaders, await_task, submit_and_wait, submit_task};
use crate::rest::call::{Call, CallHead};
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{
    Access, Answer, AnswerHeader, Content, Document, Effect, Example, Group, Parameter, ParameterLocation, Route, of,
};
use crate::rest::{idempotency_key, prefer, trace_context};
use crate::wire::{Submission, Task, parse};

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/retry-tasks",
    id: "submitTask",
    group: Group::Tasks,
    summary: "Submit a task",
    description: "Submits a request to be sent, and retried until it succeeds or its limits are reached. Once this answers, the task is \
        durable: it ends exactly once, SUCCEEDED, FAILED, EXHAUSTED or CANCELLED, also across crashes. Submitting the same request with the same \
        idempotency key again answers with the same task and changes nothing. Renewed credentials and traces (`Authorization`, \
        `Proxy-Authorization`, `Date`, `traceparent`, `tracestate`, `baggage`) do not make another request: the first ones are \
        sent, and `ignoredHeaders` names those that differ. Every attempt carries the key as \
        `Idempotency-Key`, and also `Redrive-Task-Id`, `Redrive-Attempt` and a `traceparent` of its own.",
    effect: Effect::Writes,
    access: Access::Submit,
    parameters: &[
        Parameter {
            name: "Idempotency-Key",
            location: ParameterLocation::Header,
            description: "The same as `idempotencyKey` in the document: bare, or in quotes as a structured-field string.",
            schema: parameters::idempotency_key,
        },
        PREFER,
        TRACEPARENT,
        TRACESTATE,
        BAGGAGE,
    ],
    request: Some(Document::Json {
        schema: of::<Submission<'static>>,
        is_required: true,
        description: "What to send, where, and how to retry it.",
        example: r#"{
  "targetUrl": "https://api.example.com/invoices",
  "headers": { "authorization": "Bearer 5f2b" },
  "bodyJson": { "order": 1234, "amount": "99.50 EUR" },
  "idempotencyKey": "order-1234",
  "labels": { "team": "billing" }
}"#,
    }),
    answers: &[
        Answer {
            status: 201,
            description: "The task was accepted. With `Prefer: wait`: it was accepted and has ended.",
            headers: &[LOCATION_HEADER, PREFERENCE_APPLIED],
            content: Content::Json(of::<Task<'static>>),
        },
        Answer {
            status: 200,
            description: "The same request was accepted with the same key before: the same task. With `Prefer: wait`: it has ended.",
            headers: &[LOCATION_HEADER, REPLAYED_HEADER, PREFERENCE_APPLIED],
            content: Content::Json(of::<Task<'static>>),
        },
        Answer {
            status: 202,
            description: "With `Prefer: wait`: the wait is over and the task has not ended. Its current state.",
            headers: &[LOCATION_HEADER, REPLAYED_HEADER, PREFERENCE_APPLIED],
            content: Content::Json(of::<Task<'static>>),
        },
    ],
    problems: &[
        &kind::KEY_MISMATCH,
        &kind::INVALID_KEY,
        &kind::INVALID_VALUE,
        &kind::BREAKS_STANDARD,
        &kind::UNKNOWN_BODY,
        &kind::UNKNOWN_POLICY,
        &kind::KEY_REUSED,
        &kind::DEPENDENCY_UNAVAILABLE,
    ],
    example: Example { target: "/retry-tasks", headers: &["Prefer: wait=10"], answer: DELIVERED },
    handler: |call| Box::pin(handle(call)),
};

const LOCATION_HEADER: AnswerHeader = AnswerHeader { name: "Location", description: "The path of the task." };
const REPLAYED_HEADER: AnswerHeader =
    AnswerHeader { name: "Idempotent-Replayed", description: "`true` if the task had been accepted before." };
pub(super) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let limit = call.app().limits.submission_bytes();
    let (bytes, CallHead { context, caller, parts, .. }) = call.read_json(limit).await?;
    let app = &*context.app;
    let key = idempotency_key::of(&parts.headers)?;
    let headers = SubmissionHeaders { idempotency_key: key.as_deref(), trace: trace_context::of(&parts.headers) };
    let submission: Submission<'_> = parse(&bytes)?;
    let wait = prefer::wait(&parts.headers, app.limits.longest_wait);
    let accepted = match wait {
        Some(_) => submit_and_wait(app, &caller, submission, &headers).await?,
        None => submit_task(app, &caller, submission, &headers).await?,
    };
    let Accepted { mut detail, policy, how, key_generated, findings, ignored_headers, .. } = accepted;
    if let Some(within) = wait {
        detail = await_task(app, &caller, detail.task.id, within, context.shutdown.started()).await?;
    }
    let status = match (how, wait) {
        (_, Some(_)) if !detail.task.status.is_ended() => 202,
        (Acceptance::Created, _) => 201,
        (Acceptance::Replayed, _) => 200,
    };
    let shown = Task::full(&detail, &app.secrets).with_policy(policy.as_deref());
    let document = Task { idempotency_key_generated: key_generated, findings, ignored_headers, ..shown };
    let mut reply = Reply::json(status, &document)?.with(LOCATION, task_answer::location(detail.task.id));
    if how == Acceptance::Replayed {
        reply = reply.with(IDEMPOTENT_REPLAYED, "true");
    }
    if let Some(within) = wait {
        reply = reply.with(prefer::PREFERENCE_APPLIED, format!("wait={}", within.as_secs()));
    }
    Ok(reply)
}
