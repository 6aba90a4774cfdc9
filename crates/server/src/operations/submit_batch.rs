//! Accepts many tasks in one durable commit.

use redrive_core::trace::CallerContext;

use super::submit_task::{Accepted, answer, in_doubt, missing_answer};
use crate::app::App;
use crate::caller::Caller;
use crate::intake::{self, Checked, SubmissionHeaders, SubmissionSummary};
use crate::operation_error::OperationError;
use crate::wire::{Malformed, Submission};

/// Accepts many tasks in one durable commit. Each is judged as it would be alone: a bad one, even one that could not be
/// read at all, spoils none of the others. The results come in the order of the items; their fields are named from the
/// batch, as in `tasks[3].headers`. Of tasks that had ended before, answers are here up to [`Limits::page_bytes`].
/// Tasks that name no trace of their own continue `trace`.
///
/// [`Limits::page_bytes`]: crate::Limits::page_bytes
pub async fn submit_batch(
    app: &App,
    caller: &Caller,
    items: Vec<Result<Submission<'_>, Malformed>>,
    trace: &CallerContext,
) -> Result<Vec<Result<Accepted, OperationError>>, OperationError> {
    let most = app.limits.batch_tasks;
    if items.len() > most {
        return Err(OperationError::invalid("tasks", format!("must be at most {most}, got {}", items.len())));
    }
    let headers = SubmissionHeaders { idempotency_key: None, trace: trace.clone() };
    let mut tasks = Vec::with_capacity(items.len());
    let mut judged = Vec::with_capacity(items.len());
    for (at, item) in items.into_iter().enumerate() {
        match check(app, caller, item, &headers).await {
            Ok((Checked::New(task), summary)) => {
                tasks.push(task);
                judged.push(Ok((summary, None)));
            }
            Ok((Checked::Answered(submitted), summary)) => judged.push(Ok((summary, Some(submitted)))),
            // A store that fails fails the whole: there will be no commit.
            Err(OperationError::Store(error)) => return Err(error.into()),
            Err(failure) => judged.push(Err(failure.within(&format!("tasks[{at}]")))),
        }
    }
    let submitted = match tasks.is_empty() {
        true => Vec::new(),
        false => {
            let have_keys = judged.iter().flatten().all(|(summary, _): &(SubmissionSummary, _)| !summary.key_generated);
            app.engine.submit(tasks).await.map_err(|error| in_doubt(error, have_keys))?
        }
    };
    let mut submitted = submitted.into_iter();
    let mut results = Vec::with_capacity(judged.len());
    let mut answer_bytes = 0;
    for (at, item) in judged.into_iter().enumerate() {
        results.push(match item {
            Err(failure) => Err(failure),
            Ok((summary, before)) => {
                let submitted = before.or_else(|| submitted.next()).ok_or_else(missing_answer)?;
                let answered = answer(app, caller, summary, submitted).await.map(|accepted| {
                    answer_bytes += accepted.answer_bytes();
                    // A small batch may name a thousand tasks with large answers.
                    if answer_bytes > app.limits.page_bytes { accepted.without_answer() } else { accepted }
                });
                answered.map_err(|failure| failure.within(&format!("tasks[{at}]")))
            }
        });
    }
    Ok(results)
}

async fn check(
    app: &App,
    caller: &Caller,
    item: Result<Submission<'_>, Malformed>,
    headers: &SubmissionHeaders<'_>,
) -> Result<(Checked, SubmissionSummary), OperationError> {
    intake::check(app, &caller.tenant, item?, headers).await
}
