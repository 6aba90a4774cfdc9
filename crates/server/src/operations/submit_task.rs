//! Accepts one task.

use std::sync::Arc;

use redrive_core::Answer;
use redrive_core::guards::breaker;
use redrive_core::policy::Context;
use redrive_engine::ValidatedTask;
use redrive_engine::policies::Resolved;
use redrive_store::{Error, Submitted, TaskDetail};

use crate::app::App;
use crate::caller::Caller;
use crate::intake::{self, Checked, SubmissionHeaders, SubmissionSummary};
use crate::operation_error::OperationError;
use crate::wire::{ShownFinding, Submission};

/// A task that was accepted, now or before.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// The task.
    pub detail: TaskDetail,
    /// The policy that it pins, with its overrides, if it is still kept.
    pub policy: Option<Arc<Resolved>>,
    /// Whether it is new.
    pub how: Acceptance,
    /// Whether the submission had no key, so that one was made.
    pub key_generated: bool,
    /// Whether what the dependency answered was left out of `detail`.
    pub answer_left_out: bool,
    /// The rules of the retry standard that it breaks, if the server checks them.
    pub findings: Vec<ShownFinding>,
    /// The volatile header fields of this submission that differ from those of the task, in lower case. The task keeps its
    /// own.
    pub ignored_headers: Vec<String>,
}

impl Accepted {
    /// The bytes of what the dependency answered, as far as they are here.
    pub(super) fn answer_bytes(&self) -> usize {
        let answer = self.detail.answer.as_ref();
        let headers =
            |answer: &Answer| answer.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        answer.map_or(0, |answer| headers(answer) + answer.body.inline().map_or(0, |bytes| bytes.len()))
    }

    /// The same without what the dependency answered.
    pub(super) fn without_answer(mut self) -> Self {
        self.answer_left_out = self.detail.answer.take().is_some();
        self
    }
}

/// Whether an accepted task is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// The task is new.
    Created,
    /// The same request had been accepted with the same key before.
    Replayed,
}

/// Accepts one task, which came with these `headers`; when this answers, the task is durable.
pub async fn submit_task(
    app: &App,
    caller: &Caller,
    submission: Submission<'_>,
    headers: &SubmissionHeaders<'_>,
) -> Result<Accepted, OperationError> {
    submit(app, caller, submission, headers, false).await
}

/// Accepts one task like [`submit_task`] for a caller that waits for its end. If its policy says that a caller waits, and
/// the breaker of its dependency is open, it is refused before anything is stored: waiting would be in vain.
pub async fn submit_and_wait(
    app: &App,
    caller: &Caller,
    submission: Submission<'_>,
    headers: &SubmissionHeaders<'_>,
) -> Result<Accepted, OperationError> {
    submit(app, caller, submission, headers, true).await
}

async fn submit(
    app: &App,
    caller: &Caller,
    submission: Submission<'_>,
    headers: &SubmissionHeaders<'_>,
    is_waited_for: bool,
) -> Result<Accepted, OperationError> {
    let (checked, summary) = intake::check(app, &caller.tenant, submission, headers).await?;
    let submitted = match checked {
        Checked::New(task) => {
            if is_waited_for {
                refuse_while_open(app, &task)?;
            }
            let submitted = app.engine.submit(vec![task]).await;
            submitted.map_err(|error| in_doubt(error, !summary.key_generated))?.pop().ok_or_else(missing_answer)?
        }
        Checked::Answered(submitted) => submitted,
    };
    answer(app, caller, summary, submitted).await
}

/// Refuses a task whose caller waits while the breaker of its dependency is open.
fn refuse_while_open(app: &App, task: &ValidatedTask) -> Result<(), OperationError> {
    if !task.policy.policy.context.is_some_and(Context::is_waited_for) {
        return Ok(());
    }
    match app.engine.lane_report(&task.lane).and_then(|report| report.breaker) {
        Some(breaker::State::Open { until, .. }) => Err(OperationError::DependencyUnavailable {
            dependency: task.lane.dependency.to_string(),
            retry_in: until.since(app.engine.now()),
        }),
        _ => Ok(()),
    }
}

/// The engine answers each draft; that it did not is a fault of ours, not of the caller's.
pub(super) fn missing_answer() -> OperationError {
    Error::Corrupt("a submission was not answered".into()).into()
}

/// An error of the store during a commit, with advice for the caller: the commit may have been made.
pub(super) fn in_doubt(error: Error, have_keys: bool) -> Error {
    let advice = match have_keys {
        true => "submitting it again with the same Idempotency-Key is safe",
        false => "it had no Idempotency-Key, so submitting it again may make a second task",
    };
    match error {
        Error::Unavailable(why) => {
            Error::Unavailable(format!("{why}; what was submitted may have been accepted all the same: {advice}"))
        }
        other => other,
    }
}

/// The answer to the caller for what the store said.
pub(super) async fn answer(
    app: &App,
    caller: &Caller,
    summary: SubmissionSummary,
    submitted: Submitted,
) -> Result<Accepted, OperationError> {
    let SubmissionSummary { given, request, policy, resolved, resubmission, key_generated, findings } = summary;
    let submitted = match submitted {
        Submitted::KeyOfVersion(task, stored) if resubmission.is(stored, &given) => Submitted::Replayed(task),
        Submitted::KeyOfVersion(task, _) => Submitted::KeyReused(task.id),
        other => other,
    };
    match &submitted {
        Submitted::Replayed(_) => app.totals.resubmitted(true),
        Submitted::KeyReused(_) | Submitted::KeyOfVersion(..) => app.totals.resubmitted(false),
        Submitted::Created(..) | Submitted::KeyUnreadable(_) | Submitted::BodyGone | Submitted::PolicyGone => {}
    }
    let created = |detail| Accepted {
        detail,
        policy: resolved,
        how: Acceptance::Created,
        key_generated,
        answer_left_out: false,
        findings,
        ignored_headers: Vec::new(),
    };
    match submitted {
        Submitted::Created(task, _) => Ok(created(TaskDetail { task: *task, request, answer: None })),
        Submitted::Replayed(task) => {
            // It is read because its volatile headers may differ from those of this submission, and it may have an answer.
            let stored = app.engine.store().reads().task(caller.tenant.clone(), task.id).await?;
            // It may have been deleted since.
            let gone = || TaskDetail { task: *task, request: request.clone(), answer: None };
            let detail = stored.unwrap_or_else(gone);
            let ignored_headers = intake::ignored_headers(&given, &detail.request);
            let policy = app.policy_of(&detail).await;
            Ok(Accepted { policy, how: Acceptance::Replayed, ignored_headers, ..created(detail) })
        }
        Submitted::KeyReused(id) => Err(OperationError::KeyReused(id)),
        Submitted::KeyOfVersion(task, _) => Err(OperationError::KeyReused(task.id)),
        Submitted::KeyUnreadable(id) => {
            Err(Error::Corrupt(format!("the idempotency key belongs to task {id}, which cannot be understood")).into())
        }
        Submitted::BodyGone => Err(request.body.stored().map_or_else(missing_answer, intake::unknown_body)),
        Submitted::PolicyGone => Err(intake::unknown_policy(&policy)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_store_that_is_gone_leaves_a_submission_in_doubt() {
        let unavailable = || Error::Unavailable("no answer".into());
        let keyed = in_doubt(unavailable(), true).to_string();
        assert!(keyed.starts_with("the store is unavailable: no answer; "), "{keyed}");
        assert!(keyed.ends_with(
            "may have been accepted all the same: submitting it again with the same Idempotency-Key is safe"
        ));
        assert!(in_doubt(unavailable(), false).to_string().ends_with("submitting it again may make a second task"));
        assert_eq!(in_doubt(Error::Closed, true).to_string(), Error::Closed.to_string());
    }
}
