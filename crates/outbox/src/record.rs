//! Idempotency records: what is asked, and what is answered.

use std::time::{Duration, SystemTime};

use redrive_core::idempotency::{ExecutionId, RequestHash};

/// A request to execute an operation once for its key.
///
/// ```
/// use std::time::Duration;
/// use redrive_outbox::{HashedRequest, RequestHash, Reserve};
///
/// let request = HashedRequest { method: "POST", path: "/payments", body: b"{}", ..HashedRequest::default() };
/// let reserve = Reserve::new("create-payment", "order-7", RequestHash::of(&request));
/// assert_eq!((reserve.lease, reserve.tenant.as_str()), (Duration::from_secs(60), "default"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    /// The operation, such as `create-payment`.
    pub operation: String,
    /// The idempotency key: 1 to 64 visible ASCII characters.
    pub key: String,
    /// The hash of the request that the key stands for.
    pub request_hash: RequestHash,
    /// How long no other execution may take over, if this one commits its reservation before it has ended: 1 second to 24
    /// hours.
    pub lease: Duration,
    /// How long the record is kept after its end: 1 second to 90 days.
    pub retention: Duration,
    /// The tenant that the record belongs to.
    pub tenant: String,
    /// The execution. One that asks again owns the record still. One is generated if it is `None`.
    pub execution_id: Option<ExecutionId>,
}

impl Reserve {
    /// A reservation with a lease of 60 seconds and a retention of 24 hours, in the default tenant.
    pub fn new(operation: impl Into<String>, key: impl Into<String>, request_hash: RequestHash) -> Self {
        Reserve {
            operation: operation.into(),
            key: key.into(),
            request_hash,
            lease: Duration::from_secs(60),
            retention: Duration::from_secs(24 * 3_600),
            tenant: "default".to_owned(),
            execution_id: None,
        }
    }
}

/// The answer to a [`Reserve`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// This execution owns the record: execute the operation and complete the record.
    Owner(Reservation),
    /// The operation took place before: its result.
    Replay(Ended),
    /// The operation failed for good before: its result.
    Failed(Ended),
    /// Another execution is at work.
    InProgress {
        /// When another execution may take over.
        lease_until: SystemTime,
    },
    /// The key stands for another request.
    OtherRequest,
}

/// The right to change a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The operation.
    pub operation: String,
    /// The idempotency key.
    pub key: String,
    /// The tenant.
    pub tenant: String,
    /// The execution that owns the record.
    pub execution_id: ExecutionId,
    /// Its fencing number, which grows with every new owner.
    pub epoch: i64,
    /// When another execution may take over.
    pub lease_until: SystemTime,
    /// The state of the execution before this one, if its effect may have taken place.
    pub previous: Option<PreviousState>,
}

/// The state in which an execution left a record without a final result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviousState {
    /// Its lease ran out.
    InProgress,
    /// It reported a failure after which the operation may be executed again.
    FailedRetryable,
}

/// The result of an operation that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The result.
    pub completion: Completion,
    /// Whether the body of the response is in object storage, because it is large and was completed over the API. It is
    /// empty here, and the API has it.
    pub is_body_elsewhere: bool,
}

/// The result that duplicates get: a response, a reference to what was made, both, or neither.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// The response.
    pub response: Option<Response>,
    /// The object that the operation made.
    pub resource: Option<Resource>,
}

/// A response to replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code, 100 to 599.
    pub status: u16,
    /// Header fields.
    pub headers: Vec<(String, String)>,
    /// The body, at most 1 MiB.
    pub body: Vec<u8>,
}

/// A reference to the object that an operation made, such as `payment` and `pay_123`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The type, 1 to 100 characters.
    pub kind: String,
    /// The id, 1 to 500 characters.
    pub id: String,
}

/// How an execution failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The next caller may execute the operation again.
    Retryable,
    /// Duplicates get this result.
    Final(Completion),
}

/// An event that a consumer received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The consumer.
    pub consumer: String,
    /// The id of the event: 1 to 200 visible ASCII characters.
    pub id: String,
    /// How long it is remembered: 1 second to 90 days.
    pub retention: Duration,
    /// The tenant that the consumer belongs to.
    pub tenant: String,
}

impl Event {
    /// An event that is remembered for 7 days, in the default tenant.
    pub fn new(consumer: impl Into<String>, id: impl Into<String>) -> Self {
        Event {
            consumer: consumer.into(),
            id: id.into(),
            retention: Duration::from_secs(7 * 86_400),
            tenant: "default".to_owned(),
        }
    }
}
