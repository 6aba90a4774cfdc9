//! Reads a task's attempt log.

use redrive_core::{Attempt, TaskId};

use super::get_task::get_task;
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// A page of a task's attempts, oldest first.
#[derive(Debug, Clone)]
pub struct AttemptPage {
    /// The most attempts that the task may make in one run.
    pub max_attempts: u32,
    /// The attempts.
    pub attempts: Vec<Attempt>,
    /// The number after which the next page begins, if there is one.
    pub next: Option<u32>,
}

/// A task's attempts with a number above `after`, at most `limit` (or a page's size).
pub async fn list_attempts(
    app: &App,
    caller: &Caller,
    id: TaskId,
    after: u32,
    limit: Option<usize>,
) -> Result<AttemptPage, OperationError> {
    let max_attempts = get_task(app, caller, id).await?.task.max_attempts;
    let limit = app.limits.page(limit);
    // One more than the page holds tells whether there is a next one.
    let found = app.engine.store().reads().attempts(caller.tenant.clone(), id, after, limit + 1).await?;
    let mut attempts = found.ok_or_else(|| OperationError::NoSuchTask(id.to_string()))?;
    let more = attempts.len() > limit;
    attempts.truncate(limit);
    let next = attempts.last().filter(|_| more).map(|last| last.number);
    Ok(AttemptPage { max_attempts, attempts, next })
}
