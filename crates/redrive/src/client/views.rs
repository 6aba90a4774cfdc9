//! What the tables show of the server's documents.
//!
//! Lenient on purpose: a newer server may say more, an older one less. `--json` prints what the server sent, not this.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_core::counted;
use redrive_core::duration::brief;
use serde::Deserialize;
use serde_json::Value;

/// A task.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its id.
    pub task_id: String,
    /// Where it stands.
    pub status: String,
    /// Why it ended as it did.
    pub status_reason: Option<String>,
    /// Attempts made so far, in all runs.
    #[serde(default)]
    pub attempt_number: u32,
    /// Which run this is; a server that knows no replays does not say.
    #[serde(default = "first_run")]
    pub run: u32,
    /// Attempts made in this run.
    pub attempt_in_run: Option<u32>,
    /// The most that it may make in one run.
    #[serde(default)]
    pub max_attempts: u32,
    /// When the next attempt is due, or the current one was.
    pub next_attempt_at: Option<u64>,
    /// What it waits for while it is PENDING.
    pub waiting_for: Option<String>,
    /// Until when, if that is known.
    pub waiting_until: Option<u64>,
    /// When it was accepted.
    #[serde(default)]
    pub created_at: u64,
    /// When its time is up.
    #[serde(default)]
    pub deadline_at: u64,
    /// When it ended.
    pub ended_at: Option<u64>,
    /// Whether a cancel came while an attempt was claimed or under way.
    #[serde(default)]
    pub cancel_requested: bool,
    /// What it calls.
    #[serde(default)]
    pub target_url: String,
    /// With which method.
    #[serde(default)]
    pub method: String,
    /// What it sends in the head.
    #[serde(default)]
    pub headers: serde_json::Map<String, Value>,
    /// How much it sends in the body.
    #[serde(default)]
    pub body_bytes: u64,
    /// Where the body is, if it is stored apart.
    pub body_ref: Option<String>,
    /// Whom it calls.
    #[serde(default)]
    pub dependency: String,
    /// The policy that it is retried by.
    #[serde(default)]
    pub policy_id: String,
    /// Its version.
    #[serde(default)]
    pub policy_version: u32,
    /// Whether it is a preset.
    #[serde(default)]
    pub policy_built_in: bool,
    /// The policy's fields that this task changes.
    pub policy: Option<serde_json::Map<String, Value>>,
    /// How long its retries go on; lists and older servers do not say.
    pub retry_span: Option<RetrySpan>,
    /// The key that every attempt carries.
    #[serde(default)]
    pub idempotency_key: String,
    /// The caller's own id of the work that it belongs to.
    pub correlation_id: Option<String>,
    /// The caller's names and values.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// What went wrong last.
    pub last_error: Option<TaskError>,
    /// What the dependency answered last.
    pub response: Option<Response>,
    /// What of the retry standard it breaks, in the answer to a submission.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

fn first_run() -> u32 {
    1
}

impl Task {
    /// Attempts made in this run.
    pub fn attempts_in_run(&self) -> u32 {
        self.attempt_in_run.unwrap_or(self.attempt_number)
    }

    /// Attempts that earlier runs made.
    pub fn attempts_before(&self) -> u32 {
        self.attempt_number.saturating_sub(self.attempts_in_run())
    }

    /// ` (run 2, 8 in all)` of a task that was replayed, nothing of one that was not.
    pub fn run_text(&self) -> String {
        match self.run {
            0 | 1 => String::new(),
            run => format!(" (run {run}, {} in all)", self.attempt_number),
        }
    }

    /// Whether nothing more will happen to it.
    pub fn is_ended(&self) -> bool {
        !matches!(self.status.as_str(), "PENDING" | "IN_FLIGHT")
    }

    /// What it calls: `POST http://127.0.0.1:9000/hook`, with the name of the dependency if the URL does not say it.
    pub fn request_text(&self) -> String {
        let Task { method, target_url, dependency, .. } = self;
        let is_end = |rest: &str| rest.is_empty() || rest.starts_with(['/', '?']);
        let is_of_url = dependency.is_empty() || target_url.strip_prefix(dependency.as_str()).is_some_and(is_end);
        let named = if is_of_url { String::new() } else { format!(" ({dependency})") };
        format!("{method} {target_url}{named}")
    }

    /// Why it is as it is: the reason of its status, and what went wrong last unless it was delivered.
    pub fn why_text(&self) -> String {
        let cancels = self.cancel_requested && !self.is_ended();
        let reason = self.reason().or(cancels.then_some("cancel requested"));
        let error = self.last_error.as_ref().filter(|_| self.status != "SUCCEEDED").map(TaskError::text);
        [reason.map(str::to_owned), error].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// The reason of its status, where it says more than the status.
    fn reason(&self) -> Option<&str> {
        // "CANCELLED (cancelled)" says nothing that "CANCELLED" does not.
        self.status_reason.as_deref().filter(|reason| !reason.eq_ignore_ascii_case(&self.status))
    }

    /// The status with its reason: `EXHAUSTED (attempts)`.
    pub fn status_text(&self) -> String {
        match self.reason() {
            Some(reason) => format!("{} ({reason})", self.status),
            _ if self.cancel_requested && !self.is_ended() => format!("{} (cancel requested)", self.status),
            _ => self.status.clone(),
        }
    }
}

/// How long the retries of a task go on.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetrySpan {
    /// The most attempts.
    pub attempts: u32,
    /// The mean time from the first attempt to the last one.
    pub mean_ms: u64,
    /// The longest time from the first attempt to the last one.
    pub most_ms: u64,
    /// Whether the total budget may end before the last attempt.
    #[serde(default)]
    pub cut_by_budget: bool,
}

impl Task {
    /// `webhook v1 (built in)`
    pub fn policy_text(&self) -> String {
        let built_in = if self.policy_built_in { " (built in)" } else { "" };
        format!("{} v{}{built_in}", self.policy_id, self.policy_version)
    }

    /// What happens if every attempt fails: `6 attempts over about 15s, at most 31s, if each fails at once; all within 1d`.
    pub fn plan_text(&self) -> String {
        let budget = brief(Duration::from_millis(self.deadline_at.saturating_sub(self.created_at)));
        // The deadline of a later run does not count from the acceptance.
        let within = if self.run <= 1 { format!(" within {budget}") } else { String::new() };
        let Some(span) = self.retry_span else {
            return format!("at most {}{within}", counted(self.max_attempts, "attempt"));
        };
        let span = redrive_core::RetrySpan {
            attempts: span.attempts,
            mean: Duration::from_millis(span.mean_ms),
            most: Duration::from_millis(span.most_ms),
            cut_by_budget: span.cut_by_budget,
        };
        match span.cut_by_budget {
            true => span.to_string(),
            false if span.attempts <= 1 => span.to_string(),
            false if within.is_empty() => format!("{span}, if each fails at once"),
            false => format!("{span}, if each fails at once; all{within}"),
        }
    }
}

/// What went wrong with an attempt.
#[derive(Debug, Clone, Deserialize)]
pub struct TaskError {
    /// The kind.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// What happened.
    #[serde(default)]
    pub message: String,
}

impl TaskError {
    /// `connection-refused: could not connect to 127.0.0.1:9000`
    pub fn text(&self) -> String {
        format!("{}: {}", self.kind, self.message)
    }
}

/// What a dependency answered.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// The status code.
    #[serde(default)]
    pub status: u16,
    /// The header fields.
    #[serde(default)]
    pub headers: serde_json::Map<String, Value>,
    /// The body, if it is text.
    pub body: Option<String>,
    /// The body, if it is not.
    pub body_base64: Option<String>,
    /// Where it is, if it is stored apart.
    pub body_ref: Option<String>,
    /// How much of it is kept.
    #[serde(default)]
    pub body_bytes: u64,
    /// Whether there was more of it.
    #[serde(default)]
    pub truncated: bool,
}

/// An attempt.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Its number among all attempts of the task, from 1.
    pub attempt_number: u32,
    /// Its number within its run, from 1 in every run; an older server does not say.
    pub attempt_in_run: Option<u32>,
    /// The most attempts that the task may make in one run; an older server does not say.
    pub max_attempts: Option<u32>,
    /// When its first byte went out.
    #[serde(default)]
    pub started_at: u64,
    /// How long it took, connecting included.
    pub duration_ms: Option<u64>,
    /// What it meant.
    #[serde(default)]
    pub outcome: String,
    /// The answer's status code.
    pub response_status: Option<u16>,
    /// What kind of thing went wrong.
    pub error_type: Option<String>,
    /// What went wrong.
    pub error_message: Option<String>,
    /// The wait before the next attempt.
    pub backoff_ms: Option<u64>,
}

impl Attempt {
    /// Its number within its run.
    pub fn number_in_run(&self) -> u32 {
        self.attempt_in_run.unwrap_or(self.attempt_number)
    }

    /// `2/6`; only `8` of one that was logged before attempts were counted within their run.
    pub fn number_text(&self) -> String {
        match (self.number_in_run(), self.max_attempts) {
            (in_run, Some(at_most)) if in_run <= at_most => format!("{in_run}/{at_most}"),
            (in_run, _) => in_run.to_string(),
        }
    }

    /// Whether it was made in a run after the first.
    pub fn is_of_later_run(&self) -> bool {
        self.number_in_run() != self.attempt_number
    }
}

/// A policy; its fields are shown by the names that the server gives them.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Its name.
    pub policy_id: String,
    /// Its version; nothing if it is not the server's.
    pub version: Option<u32>,
    /// When that was made.
    #[serde(default)]
    pub created_at: u64,
    /// Whether it is a preset, as it is.
    #[serde(default)]
    pub built_in: bool,
    /// What of the retry standard it breaks, in the answer to a registration.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Its other versions, where the server says them.
    #[serde(default)]
    pub versions: Vec<Policy>,
    /// Its fields.
    #[serde(flatten)]
    pub fields: serde_json::Map<String, Value>,
}

/// A rule of the retry standard that a document breaks.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The rule's number.
    #[serde(default)]
    pub rule: String,
    /// What was looked for.
    #[serde(default)]
    pub check: String,
    /// What the standard does about it.
    #[serde(default)]
    pub gate: String,
    /// Where.
    #[serde(default)]
    pub field: String,
    /// What is wrong.
    #[serde(default)]
    pub wrong: String,
    /// What to do about it.
    #[serde(default)]
    pub fix: String,
}

impl Finding {
    /// In two lines, for people.
    pub fn text(&self) -> String {
        let Finding { rule, check, field, wrong, fix, .. } = self;
        format!("{rule} {check}: {field}: {wrong}\n  fix: {fix}")
    }
}
