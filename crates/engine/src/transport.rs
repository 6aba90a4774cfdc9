//! Sending (injected): one call is one send on the wire, never more.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::trace::TraceParent;
use redrive_core::{Answer, ErrorType, IdempotencyKey, Lane, Request, TaskId};

/// The answer to a send, or why there is none.
pub type Sending = Pin<Box<dyn Future<Output = Result<Answer, SendError>> + Send>>;

/// Sends requests.
pub trait Transport: Send + Sync + 'static {
    /// Sends once: no redirect is followed and nothing is sent a second time. Dropping the future abandons the attempt
    /// and its connection.
    fn send(&self, outbound: Outbound) -> Sending;
}

/// The last check before a request is sent.
pub trait Gate: Send + Sync + std::fmt::Debug {
    /// Called once the connection is established, immediately before the first byte is written. On [`Withdrawn`]
    /// nothing is written, and the send ends with [`ErrorType::NotSent`]. A transport that has to write the request to
    /// another connection, because not one byte of it was sent on the first, calls this again.
    fn open(&self) -> Result<(), Withdrawn>;
}

/// The request must not be sent any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the send was withdrawn before its first byte")]
pub struct Withdrawn;

/// A gate that is always open, for tests of transports.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlwaysOpen;

impl Gate for AlwaysOpen {
    fn open(&self) -> Result<(), Withdrawn> {
        Ok(())
    }
}

/// One attempt, ready to send.
#[derive(Debug, Clone)]
pub struct Outbound {
    /// The task's lane: connections are pooled by tenant and origin.
    pub lane: Lane,
    /// What to send.
    pub request: Arc<Request>,
    /// Sent as `Idempotency-Key`.
    pub idempotency_key: IdempotencyKey,
    /// Sent as `Redrive-Task-Id`.
    pub task: TaskId,
    /// Sent as `Redrive-Attempt`.
    pub attempt: u32,
    /// What the request says about its trace, in place of what its header fields say. `None` leaves these as they are.
    pub trace: Option<AttemptTrace>,
    /// The timeout for connecting: name resolution, TCP and TLS.
    pub connect_timeout: Duration,
    /// The timeout of the whole attempt, from the call to the last byte read.
    pub attempt_timeout: Duration,
    /// Called immediately before the first byte.
    pub gate: Arc<dyn Gate>,
}

/// What an attempt says about its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptTrace {
    /// Sent as `traceparent`.
    pub parent: TraceParent,
    /// Whether `tracestate` is sent as given: it belongs to the caller's trace, and must not be sent with another one.
    pub keeps_state: bool,
}

/// Why a send got no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SendError {
    /// The kind, which decides whether to retry.
    pub kind: ErrorType,
    /// What happened, for people; never a body, a token or a secret.
    pub message: String,
}
