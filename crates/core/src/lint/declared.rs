//! What a service declares of its retries: the document that platform teams keep beside a service's code.
//!
//! What is declared is taken at its word. What a context makes mandatory (a budget, a dead-letter queue, keys for POST)
//! is missing if it is not declared; anything else that is not declared is not judged.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::duration::parse_duration;
use crate::policy::{Context, Spec};

/// A service and the dependencies that it calls.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// What kind of calls it makes, unless a dependency says otherwise.
    pub context: Context,
    /// What it calls.
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
    /// How it tells events apart that it has seen before.
    #[serde(default)]
    pub dedupe: Option<Dedupe>,
    /// What it writes to its log for a retry.
    #[serde(default)]
    pub logging: Option<Logging>,
    /// The metrics that it has, by name.
    #[serde(default)]
    pub metrics: Option<Vec<String>>,
}

/// One dependency of a service.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// What kind of calls these are, where that is not the service's own context.
    #[serde(default)]
    pub context: Option<Context>,
    /// The policy that calls are retried by; the context's preset if left out.
    #[serde(default)]
    pub policy: Option<PolicyChoice>,
    /// The HTTP methods that are called.
    #[serde(default)]
    pub methods: Vec<String>,
    /// What is retried, besides what the policy says: status codes, gRPC codes, errors by name.
    #[serde(default)]
    pub retry_on: Vec<RetryOn>,
    /// How often a name is looked up that does not resolve.
    #[serde(default)]
    pub dns_attempts: Option<u32>,
    /// What is done about a Retry-After.
    #[serde(default)]
    pub retry_after: Option<RetryAfter>,
    /// How a retry is made safe.
    #[serde(default)]
    pub idempotency: Option<Idempotency>,
    /// How many retries there may be among all requests.
    #[serde(default)]
    pub retry_budget: Option<RetryBudget>,
    /// Where what could not be delivered goes.
    #[serde(default)]
    pub dead_letter_queue: Option<DeadLetterQueue>,
    /// What happens to what has used up its retries: `dead-letter`, `fail` or `drop`.
    #[serde(default)]
    pub when_exhausted: Option<String>,
    /// What becomes of a token that has expired.
    #[serde(default)]
    pub authentication: Option<Authentication>,
}

/// A policy by its name, or its fields.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum PolicyChoice {
    /// The name of a policy, or of a preset.
    Named(String),
    /// The fields themselves.
    Inline(Box<Spec>),
}

/// Something that is retried.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum RetryOn {
    /// An HTTP status code.
    Status(u16),
    /// A gRPC code or an error, by its name.
    Named(String),
}

/// What is done about a Retry-After.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RetryAfter {
    /// It is waited for; where it is longer than the time that is left, the call fails at once.
    Honoured,
    /// It is waited for up to a limit, and then the call is retried all the same.
    Capped,
    /// Nothing.
    Ignored,
}

/// How a retry is made safe.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Idempotency {
    /// What the key is: `uuid-v4`, `none`, or something else.
    pub key: String,
    /// What it is made for: each `operation`, or each `attempt`.
    #[serde(default)]
    pub per: Option<String>,
    /// The most characters of a key.
    #[serde(default)]
    pub max_length: Option<u32>,
    /// How long the server keeps it.
    #[serde(default)]
    pub retention: Option<Span>,
    /// Whether the server answers a duplicate with the first answer.
    #[serde(default)]
    pub answers_duplicates: Option<bool>,
}

/// How many retries there may be among all requests.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryBudget {
    /// The part of all requests that may be retries: 0.2 is a fifth.
    pub ratio: f64,
    /// Over how long that is counted.
    #[serde(default)]
    pub window: Option<Span>,
    /// What it is kept for: each `dependency`, or something larger.
    #[serde(default)]
    pub per: Option<String>,
    /// What happens to a retry when it is spent: `suppress`, `wait` (durable work only) or `retry`.
    #[serde(default)]
    pub when_spent: Option<String>,
    /// Whether the circuit breaker opens when it is spent.
    #[serde(default)]
    pub opens_breaker: Option<bool>,
}

/// Where what could not be delivered goes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeadLetterQueue {
    /// Its name.
    pub name: String,
    /// Whether a message in it raises an alert.
    #[serde(default)]
    pub alert: Option<bool>,
    /// What a message in it keeps: `payload`, `headers`, `retry-metadata`.
    #[serde(default)]
    pub keeps: Option<Vec<String>>,
}

/// How events are told apart that were seen before.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dedupe {
    /// What an event is known by: `event-id`, or something else.
    #[serde(default)]
    pub by: Option<String>,
    /// How long that is kept.
    pub retention: Span,
}

/// What becomes of a token that has expired.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Authentication {
    /// `refresh` it, `fail`, `reuse` it, `downgrade` to another credential, or `skip` it.
    pub when_expired: String,
}

/// What is written to the log for a retry.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Logging {
    /// The names of the fields.
    #[serde(default)]
    pub fields: Option<Vec<String>>,
    /// Whether bodies are logged.
    #[serde(default)]
    pub bodies: Option<bool>,
}

/// A duration as people write it, such as `24h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_duration(&text).map(Span).map_err(|wanted| serde::de::Error::custom(format!("{wanted}, got {text:?}")))
    }
}
