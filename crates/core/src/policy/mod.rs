//! A policy: named, versioned rules for how a task is retried.
//!
//! [`Spec`] is the document: every field may be left out. [`Policy`] is what the engine uses: complete, valid, and made
//! from a spec by [`Policy::resolve`] only.

mod approval;
mod built_in;
mod check;
mod context;
mod defaults;
mod invalid;
mod limits;
mod resolve;
mod shown;
mod spec;

pub use approval::Approval;
pub use built_in::built_in;
pub use context::Context;
pub use invalid::{FieldProblem, Invalid};
pub use limits::Limits;
pub use shown::SHOWN_BESIDE;
pub use spec::{BackoffKind, JitterKind, Spec};

use std::collections::BTreeSet;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::jitter::Jitter;

/// Complete and valid rules for retrying a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The kind of work that it is for, if given.
    pub context: Option<Context>,
    /// The most attempts of a task, the first one included.
    pub max_attempts: u32,
    /// How the wait before a retry grows.
    pub backoff: Backoff,
    /// How that wait is spread out.
    pub jitter: Jitter,
    /// From acceptance to the end of the last attempt.
    pub total_budget: Duration,
    /// How long one attempt may take in all.
    pub attempt_timeout: Duration,
    /// How long an attempt may take to connect, name resolution and TLS included.
    pub connect_timeout: Duration,
    /// The status codes that are retried; without a list, the standard's table decides.
    pub retryable_status_codes: Option<BTreeSet<u16>>,
    /// The longest Retry-After that is waited for; a longer one ends the task.
    pub retry_after_max: Option<Duration>,
    /// Whether a dependency that seems to be gone for good is paused.
    pub pause_on_gone: bool,
}
