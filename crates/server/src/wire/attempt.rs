//! The attempt log as it is shown.

use std::time::Duration;

use redrive_core::{Attempt, TaskId};
use schemars::JsonSchema;
use serde::Serialize;

use super::schema;
use super::task::as_text;

/// One attempt to send a task's request.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Attempt")]
pub struct ShownAttempt<'a> {
    /// The task that it is an attempt of.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "schema::Uuid")]
    pub task_id: TaskId,
    /// Its number among all attempts of the task, from 1. It grows over all runs.
    pub attempt_number: u32,
    /// Its number within its run, from 1 in every run: what `maxAttempts` limits. In an attempt of
    /// an old version that did not log it, the same as `attemptNumber`.
    pub attempt_in_run: u32,
    /// The most attempts that the task may make in one run.
    pub max_attempts: u32,
    /// When its first byte was sent, in epoch milliseconds. If none was, when it began to connect; if a crash
    /// interrupted it, when it was claimed.
    pub started_at: u64,
    /// How long the whole attempt took in milliseconds, connecting included; `null` if a crash interrupted it.
    pub duration_ms: Option<u64>,
    /// Its outcome.
    #[schemars(with = "schema::AttemptOutcome")]
    pub outcome: &'static str,
    /// The answer's status code, if there was an answer.
    pub response_status: Option<u16>,
    /// The kind of the error, if there was one.
    #[schemars(with = "Option<schema::ErrorKind>")]
    pub error_type: Option<&'static str>,
    /// The error, in a sentence.
    pub error_message: Option<&'a str>,
    /// The wait before the next attempt in milliseconds, if there was to be one.
    pub backoff_ms: Option<u64>,
}

impl<'a> ShownAttempt<'a> {
    /// An attempt of a task that may make `max_attempts` in one run.
    pub fn new(task_id: TaskId, max_attempts: u32, attempt: &'a Attempt) -> Self {
        ShownAttempt {
            task_id,
            attempt_number: attempt.number,
            attempt_in_run: attempt.number_in_run,
            max_attempts,
            started_at: attempt.started_at.as_millis(),
            duration_ms: attempt.duration.map(millis),
            outcome: attempt.outcome.as_str(),
            response_status: attempt.response_status,
            error_type: attempt.error.as_ref().map(|error| error.kind.as_str()),
            error_message: attempt.error.as_ref().map(|error| error.message.as_str()),
            backoff_ms: attempt.backoff.map(millis),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A page of a task's attempts, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptList<'a> {
    /// The attempts.
    pub attempts: Vec<ShownAttempt<'a>>,
    /// Where the next page begins; `null` on the last one.
    pub next_cursor: Option<String>,
}
