//! A task as it is shown.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redrive_core::attempt::LastError;
use redrive_core::{Answer, CorrelationId, Reason, RetrySpan, Status, TaskId, policy};
use redrive_engine::Waiting;
use redrive_engine::policies::Resolved;
use redrive_store::{Counts, TaskDetail};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::finding::ShownFinding;
use super::headers::ShownHeaders;
use super::schema;
use super::secret::Secrets;

/// A task and its status. Times are epoch milliseconds; values that do not exist are `null`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Task<'a> {
    /// The task's id, a version 7 UUID.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "schema::Uuid")]
    pub task_id: TaskId,
    /// Its status.
    #[schemars(with = "schema::TaskStatus")]
    pub status: &'static str,
    /// Why it ended, once it has; nothing for SUCCEEDED.
    #[schemars(with = "Option<schema::StatusReason>")]
    pub status_reason: Option<&'static str>,
    /// `true` if a retry was suppressed because the retry budget of its dependency was spent (`statusReason` is `budget`);
    /// left out otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
    /// Attempts made so far, in all runs, the one under way included.
    pub attempt_number: u32,
    /// Which run this is: 1, and one more each time that the task is replayed.
    pub run: u32,
    /// Attempts made in this run, the one under way included.
    pub attempt_in_run: u32,
    /// The most attempts it may make in one run, the first one included.
    pub max_attempts: u32,
    /// When the next attempt is due; while in flight, when the current one was; nothing once ended.
    pub next_attempt_at: Option<u64>,
    /// What it waits for while it is PENDING, as this node sees it. Left out if it is about to be sent, and in the
    /// answer to a submission.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::WaitReason>")]
    pub waiting_for: Option<&'static str>,
    /// Until when it waits; left out if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_until: Option<u64>,
    /// When it was accepted.
    pub created_at: u64,
    /// When its total time budget ends; a replay gives it a new one.
    pub deadline_at: u64,
    /// When it ended.
    pub ended_at: Option<u64>,
    /// Whether a cancel came while an attempt was claimed or under way: that attempt may still reach the dependency, no
    /// further one is made. Only the status CANCELLED means that nothing is sent any more.
    pub cancel_requested: bool,
    /// The URL that it calls; a user, a password and the values of secret parameters in it are shown as `***`.
    pub target_url: Cow<'a, str>,
    /// The method.
    pub method: &'a str,
    /// The header fields that it sends.
    pub headers: ShownHeaders<'a>,
    /// The size of the body that it sends, in bytes.
    pub body_bytes: u64,
    /// Where the body can be read, if it is stored apart from the task: `GET /blobs/{bodyRef}`. Otherwise left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_ref: Option<String>,
    /// The dependency that it calls.
    pub dependency: &'a str,
    /// The policy that it is retried by.
    pub policy_id: &'a str,
    /// The version of the policy that it was accepted with. Later versions do not apply to it.
    pub policy_version: u32,
    /// `true` if the policy is built in: a preset, not one that was registered. Otherwise left out, and left out in lists.
    #[serde(skip_serializing_if = "is_false")]
    pub policy_built_in: bool,
    /// The policy's fields that this task changes, if any.
    pub policy: Option<&'a policy::Spec>,
    /// How long its retries go on if every attempt fails at once. Left out in lists, and if the version of its policy is no
    /// longer kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_span: Option<ShownRetrySpan>,
    /// The key that every attempt carries.
    pub idempotency_key: &'a str,
    /// The caller's own id of the work that it belongs to. Left out if none was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<&'a str>,
    /// `true` in the answer to a submission without a key: this key was generated. Otherwise left out.
    #[serde(skip_serializing_if = "is_false")]
    pub idempotency_key_generated: bool,
    /// In the answer to a submission that was accepted before: the header fields of this submission, or of the task, that
    /// differ and say nothing about which request it is, such as a renewed `authorization`. The task keeps and sends those
    /// of the first submission. Otherwise left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored_headers: Vec<String>,
    /// In the answer to a submission: the rules of the retry standard that it breaks. Otherwise left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ShownFinding>,
    /// The labels that the caller gave.
    pub labels: &'a BTreeMap<String, String>,
    /// The last error.
    pub last_error: Option<ShownError<'a>>,
    /// The last answer of the dependency, once the task has ended. Left out in lists, and in the answer to a batch once
    /// it shows 1 MiB of responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Response<'a>>")]
    pub response: Option<Option<Response<'a>>>,
}

impl<'a> Task<'a> {
    /// A task with everything that is shown of it.
    pub fn full(detail: &'a TaskDetail, secrets: &'a Secrets) -> Self {
        let response = detail.answer.as_ref().map(|answer| Response::new(answer, secrets));
        Task { response: Some(response), ..Task::summary(detail, secrets) }
    }

    /// The task with what it waits for.
    #[must_use]
    pub fn waiting(self, waiting: Option<Waiting>) -> Self {
        Task {
            waiting_for: waiting.map(|waiting| waiting.what.as_str()),
            waiting_until: waiting.and_then(|waiting| waiting.until).map(|until| until.as_millis()),
            ..self
        }
    }

    /// The task with what its policy, overrides included, says about it.
    #[must_use]
    pub fn with_policy(self, policy: Option<&Resolved>) -> Self {
        let policy_built_in = policy.is_some_and(|policy| policy.is_built_in);
        Task { policy_built_in, retry_span: policy.map(|policy| policy.retry_span().into()), ..self }
    }

    /// A task as a list shows it.
    pub fn summary(detail: &'a TaskDetail, secrets: &'a Secrets) -> Self {
        let TaskDetail { task, request, .. } = detail;
        Task {
            task_id: task.id,
            status: task.status.as_str(),
            status_reason: task.reason.map(|reason| reason.as_str()),
            suppressed: task.reason == Some(Reason::Budget),
            attempt_number: task.attempt_number,
            run: task.run,
            attempt_in_run: task.attempt_in_run(),
            max_attempts: task.max_attempts,
            next_attempt_at: task.next_attempt_at.map(|at| at.as_millis()),
            waiting_for: None,
            waiting_until: None,
            created_at: task.created_at.as_millis(),
            deadline_at: task.deadline_at.as_millis(),
            ended_at: task.ended_at.map(|at| at.as_millis()),
            cancel_requested: task.cancel_requested,
            target_url: secrets.mask(&request.target_url),
            method: &request.method,
            headers: ShownHeaders { fields: &request.headers, secrets },
            body_bytes: request.body.length(),
            body_ref: request.body.stored().map(|body| body.hash.to_string()),
            dependency: task.lane.dependency.as_str(),
            policy_id: task.policy.id.as_str(),
            policy_version: task.policy.version,
            policy_built_in: false,
            policy: request.overrides.as_ref(),
            retry_span: None,
            idempotency_key: task.idempotency_key.as_str(),
            correlation_id: task.correlation_id.as_ref().map(CorrelationId::as_str),
            idempotency_key_generated: false,
            ignored_headers: Vec::new(),
            findings: Vec::new(),
            labels: &request.labels,
            last_error: task.last_error.as_ref().map(ShownError::from),
            response: None,
        }
    }
}

/// How long the retries of a run go on if every attempt fails at once: the sum of its waits. The time that the attempts take
/// comes on top of it, and a 429 or a Retry-After can make any wait longer.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RetrySpan")]
pub struct ShownRetrySpan {
    /// The most attempts that the policy and its total budget allow, the first one included.
    pub attempts: u32,
    /// The mean time from the first attempt to the last one; if the total budget cuts long waits off, at most this.
    pub mean_ms: u64,
    /// The longest time from the first attempt to the last one.
    pub most_ms: u64,
    /// Whether the total budget may end before the last of the policy's attempts.
    pub cut_by_budget: bool,
}

impl From<RetrySpan> for ShownRetrySpan {
    fn from(span: RetrySpan) -> Self {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        ShownRetrySpan {
            attempts: span.attempts,
            mean_ms: millis(span.mean),
            most_ms: millis(span.most),
            cut_by_budget: span.cut_by_budget,
        }
    }
}

/// The error of an attempt.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TaskError")]
pub struct ShownError<'a> {
    /// The kind, stable.
    #[serde(rename = "type")]
    #[schemars(with = "schema::ErrorKind")]
    pub kind: &'static str,
    /// What happened, in a sentence.
    pub message: &'a str,
}

impl<'a> From<&'a LastError> for ShownError<'a> {
    fn from(error: &'a LastError) -> Self {
        ShownError { kind: error.kind.as_str(), message: &error.message }
    }
}

/// The answer of a dependency.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Response<'a> {
    /// The status code.
    pub status: u16,
    /// The header fields.
    pub headers: ShownHeaders<'a>,
    /// The body if it is text, or the beginning of it; otherwise left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<&'a str>,
    /// The body as base64 if it is not text; otherwise left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
    /// Where the body can be read if it is too large to be shown here: `GET /blobs/{bodyRef}`. Otherwise left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_ref: Option<String>,
    /// How many bytes of the body are stored.
    pub body_bytes: u64,
    /// Whether the body was longer than what is stored.
    pub truncated: bool,
}

impl<'a> Response<'a> {
    /// The answer, with its secrets masked.
    pub fn new(answer: &'a Answer, secrets: &'a Secrets) -> Self {
        let bytes = answer.body.inline();
        let body = bytes.and_then(|bytes| text(bytes, answer.truncated));
        Response {
            status: answer.status,
            headers: ShownHeaders { fields: &answer.headers, secrets },
            body,
            body_base64: bytes.filter(|_| body.is_none()).map(|bytes| STANDARD.encode(bytes)),
            body_ref: answer.body.stored().map(|body| body.hash.to_string()),
            body_bytes: answer.body.length(),
            truncated: answer.truncated,
        }
    }
}

/// The body, if it is text. Where it was cut off inside of a character, that character is left out.
fn text(bytes: &[u8], truncated: bool) -> Option<&str> {
    let body = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if truncated && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    (!body.contains('\0')).then_some(body)
}

/// A page of tasks, newest first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskList<'a> {
    /// The tasks. A short or empty page may still have a next one.
    pub tasks: Vec<Task<'a>>,
    /// Where the next page begins; `null` on the last one.
    pub next_cursor: Option<String>,
    /// How many tasks there are in each status, of all tasks.
    pub counts: StatusCounts,
}

/// How many tasks there are in each status.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub struct StatusCounts {
    /// Waiting for their next attempt.
    pub pending: u64,
    /// Being sent.
    pub in_flight: u64,
    /// Accepted by their dependency.
    pub succeeded: u64,
    /// Failed in a way that no retry can fix.
    pub failed: u64,
    /// Out of attempts or time.
    pub exhausted: u64,
    /// Cancelled.
    pub cancelled: u64,
}

impl From<&Counts> for StatusCounts {
    fn from(counts: &Counts) -> Self {
        let of = |status| counts.get(&status).copied().unwrap_or(0);
        StatusCounts {
            pending: of(Status::Pending),
            in_flight: of(Status::InFlight),
            succeeded: of(Status::Succeeded),
            failed: of(Status::Failed),
            exhausted: of(Status::Exhausted),
            cancelled: of(Status::Cancelled),
        }
    }
}

/// A task's id as text.
pub(super) fn as_text<S: Serializer>(id: &TaskId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn answer(body: &[u8], truncated: bool) -> Answer {
        Answer { status: 200, headers: Vec::new(), body: Bytes::copy_from_slice(body).into(), truncated }
    }

    #[test]
    fn a_body_that_is_not_text_is_shown_as_base64() {
        for (body, truncated, text, base64) in [
            (&b"fine"[..], false, Some("fine"), None),
            (b"", false, Some(""), None),
            (b"\xff\xfe", false, None, Some("//4=")),
            (b"a\0b", false, None, Some("YQBi")),
            ("né".as_bytes().split_at(2).0, true, Some("n"), None),
            ("né".as_bytes().split_at(2).0, false, None, Some("bsM=")),
        ] {
            let answer = answer(body, truncated);
            let secrets = Secrets::default();
            let shown = Response::new(&answer, &secrets);
            assert_eq!((shown.body, shown.body_base64.as_deref()), (text, base64), "{body:?}");
        }
    }
}
