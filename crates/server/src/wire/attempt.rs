//! The attempt log as it is shown.

use std::time::Duration;

use redrive_core::Attempt;
use schemars::JsonSchema;
use serde::Serialize;

use super::schema;

/// One send of a task over the wire.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Attempt")]
pub struct ShownAttempt<'a> {
    /// Its number, from 1.
    pub attempt_number: u32,
    /// When it began, in epoch milliseconds.
    pub started_at: u64,
    /// How long it took, in milliseconds; nothing if a crash cut it off.
    pub duration_ms: Option<u64>,
    /// What it meant.
    #[schemars(with = "schema::AttemptOutcome")]
    pub outcome: &'static str,
    /// The answer's status code, if there was an answer.
    pub response_status: Option<u16>,
    /// What kind of thing went wrong, if anything did.
    #[schemars(with = "Option<schema::ErrorKind>")]
    pub error_type: Option<&'static str>,
    /// What went wrong, in a sentence.
    pub error_message: Option<&'a str>,
    /// The wait before the next attempt in milliseconds, if there was to be one.
    pub backoff_ms: Option<u64>,
}

impl<'a> From<&'a Attempt> for ShownAttempt<'a> {
    fn from(attempt: &'a Attempt) -> Self {
        ShownAttempt {
            attempt_number: attempt.number,
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
