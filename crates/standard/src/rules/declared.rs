//! The declaration of a service's retries: a document that platform teams keep beside the service's code.
//!
//! The declaration is taken as true. What a context makes mandatory (a budget, a dead-letter queue, keys for POST)
//! is missing if it is not declared; anything else that is not declared is not checked.

use std::time::Duration;

use redrive_core::duration::parse_duration;
use redrive_core::policy::{Context, Spec};
use serde::{Deserialize, Deserializer};

use super::retry_on::RetryOn;
use super::word::{plain, vocabulary};

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
    pub methods: Vec<Method>,
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
    /// What happens to what has used up its retries.
    #[serde(default)]
    pub when_exhausted: Option<WhenExhausted>,
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

vocabulary! {
    /// An HTTP method.
    Method {
        /// Safe to retry.
        Get = "GET";
        /// Safe to retry.
        Head = "HEAD";
        /// Safe to retry.
        Options = "OPTIONS";
        /// Safe to retry.
        Put = "PUT";
        /// Safe to retry.
        Delete = "DELETE";
        /// Safe to retry with an idempotency key only.
        Post = "POST";
        /// Safe to retry with an idempotency key only.
        Patch = "PATCH";
    }
}

impl Method {
    /// Whether it is safe to retry only with a key.
    pub const fn needs_key(self) -> bool {
        matches!(self, Method::Post | Method::Patch)
    }

    /// The method that is written so on the wire, if the standard names it.
    pub fn named(text: &str) -> Option<Method> {
        Method::read(text)
    }
}

vocabulary! {
    /// What is done about a Retry-After.
    RetryAfter {
        /// It is waited for; where it is longer than the time that is left, the call fails at once.
        Honoured = "honoured" | "honored";
        /// It is waited for up to a limit, and then the call is retried all the same.
        Capped = "capped";
        /// Nothing.
        Ignored = "ignored";
    }
}

vocabulary! {
    /// What happens to what has used up its retries.
    WhenExhausted {
        /// It goes to the dead-letter queue.
        DeadLetter = "dead-letter" | "dead-letter-queue" | "dlq";
        /// The caller gets the error.
        Fail = "fail";
        /// It is gone.
        Drop = "drop" | "discard" | "ignore";
    }
}

/// How a retry is made safe.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Idempotency {
    /// What the key is.
    pub key: Key,
    /// What it is made for.
    #[serde(default)]
    pub per: Option<KeyPer>,
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

/// What an idempotency key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// There is none.
    None,
    /// A random UUID: `uuid-v4`.
    UuidV4,
    /// Something else, in the service's own words.
    Other(String),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(match plain(&text).as_str() {
            "" | "none" | "no" => Key::None,
            "uuidv4" | "uuid4" | "randomuuid" => Key::UuidV4,
            _ => Key::Other(text),
        })
    }
}

vocabulary! {
    /// What an idempotency key is made for.
    KeyPer {
        /// The logical operation, so that all of its attempts have the same one.
        Operation = "operation" | "logical-operation";
        /// Each attempt.
        Attempt = "attempt" | "retry";
    }
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
    /// What it is kept for.
    #[serde(default)]
    pub per: Option<BudgetPer>,
    /// What happens to a retry when it is spent.
    #[serde(default)]
    pub when_spent: Option<WhenSpent>,
    /// Whether the circuit breaker opens when it is spent.
    #[serde(default)]
    pub opens_breaker: Option<bool>,
    /// How a backlog of retries drains.
    #[serde(default)]
    pub drain: Option<Drain>,
}

vocabulary! {
    /// How a backlog of retries drains.
    Drain {
        /// A retry that succeeds while the dependency is healthy is refunded.
        Earned = "earned";
        /// Every retry counts.
        Strict = "strict";
    }
}

vocabulary! {
    /// What one retry budget is kept for.
    BudgetPer {
        /// Each dependency.
        Dependency = "dependency" | "downstream-dependency" | "downstream";
        /// All dependencies of the service.
        Service = "service";
        /// All dependencies that one process calls.
        Process = "process" | "instance" | "client";
        /// Everything.
        Everything = "everything" | "global" | "all";
    }
}

vocabulary! {
    /// What happens to a retry when the budget is spent.
    WhenSpent {
        /// The caller gets the original error.
        Suppress = "suppress" | "suppressed" | "fail";
        /// It waits until there is some left; for durable work.
        Wait = "wait";
        /// It goes on.
        Retry = "retry" | "continue" | "ignore";
    }
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
    /// What a message in it keeps.
    #[serde(default)]
    pub keeps: Option<Vec<Kept>>,
}

vocabulary! {
    /// Something that a dead letter keeps.
    Kept {
        /// What was to be delivered.
        Payload = "payload" | "original-payload" | "body";
        /// What it was to be delivered with.
        Headers = "headers";
        /// How often it was tried, when, and why it failed.
        RetryMetadata = "retry-metadata" | "metadata" | "attempts";
    }
}

/// How events are told apart that were seen before.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dedupe {
    /// What an event is known by: `event-id`, or something else.
    #[serde(default)]
    pub by: Option<DedupeBy>,
    /// How long that is kept.
    pub retention: Span,
}

/// What an event is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DedupeBy {
    /// Its id.
    EventId,
    /// Something else, in the service's own words.
    Other(String),
}

impl<'de> Deserialize<'de> for DedupeBy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(match plain(&text).as_str() {
            "eventid" | "messageid" => DedupeBy::EventId,
            _ => DedupeBy::Other(text),
        })
    }
}

/// What becomes of a token that has expired.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Authentication {
    /// What is done before the retry.
    pub when_expired: WhenExpired,
}

vocabulary! {
    /// What is done about a token that has expired.
    WhenExpired {
        /// A new one of the same kind is got.
        Refresh = "refresh";
        /// The call fails.
        Fail = "fail";
        /// It is sent all the same.
        Reuse = "reuse";
        /// Another, weaker credential is sent.
        Downgrade = "downgrade" | "fallback";
        /// None is sent.
        Skip = "skip" | "none" | "anonymous";
    }
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
