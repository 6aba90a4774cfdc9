//! A record, its key, its owner and its result.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::RequestHash;
use crate::body::Body;
use crate::id::{Consumer, InvalidId, OperationName, RecordName, TenantId};
use crate::time::Timestamp;

/// What a key identifies within a tenant: an operation of a service, or the events of a consumer.
///
/// Written as one text: the name of an operation, or `inbox/` and the name of a consumer. Names have no slash, so the two
/// never meet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// An operation, such as `create-payment`.
    Named(OperationName),
    /// The events that a consumer has seen.
    Inbox(Consumer),
}

/// What the text of an inbox begins with.
const INBOX: &str = "inbox/";

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Named(name) => f.write_str(name.as_str()),
            Operation::Inbox(consumer) => write!(f, "{INBOX}{consumer}"),
        }
    }
}

impl FromStr for Operation {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        match text.strip_prefix(INBOX) {
            Some(consumer) => Consumer::try_new(consumer).map(Operation::Inbox),
            None => OperationName::try_new(text).map(Operation::Named),
        }
    }
}

/// The key of a record. Two tenants, or two operations, with the same key have two records.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey {
    /// The tenant: the record's scope.
    pub tenant: TenantId,
    /// The operation.
    pub operation: Operation,
    /// The idempotency key, or the id of an event.
    pub name: RecordName,
}

impl fmt::Display for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.tenant, self.operation, self.name)
    }
}

/// One execution of an operation: a UUID, made by the service or by the caller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecutionId(u128);

impl ExecutionId {
    /// A version 4 UUID, made from 128 random bits.
    pub fn from_random(random: u128) -> Self {
        ExecutionId(uuid::Builder::from_random_bytes(random.to_be_bytes()).into_uuid().as_u128())
    }

    /// The id with these bits.
    pub const fn from_u128(bits: u128) -> Self {
        ExecutionId(bits)
    }

    /// All 128 bits.
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Uuid::from_u128(self.0), f)
    }
}

impl fmt::Debug for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ExecutionId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        // A UUID has other text forms as well, of other lengths; this service writes only one.
        if text.len() != Hyphenated::LENGTH {
            return Err(InvalidId::NotAUuid);
        }
        Uuid::try_parse(text).map(|uuid| ExecutionId(uuid.as_u128())).map_err(|_| InvalidId::NotAUuid)
    }
}

/// The fencing number of an owner: it grows with every new owner of a record. The first owner has 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch of the first owner.
    pub const FIRST: Epoch = Epoch(1);

    /// The epoch of the next owner.
    #[must_use]
    pub fn next(self) -> Self {
        Epoch(self.0.saturating_add(1))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Who may change a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The execution.
    pub execution: ExecutionId,
    /// Its fencing number.
    pub epoch: Epoch,
}

/// The state of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// An execution owns the record and has not reported its result.
    InProgress,
    /// The operation took place; its result is kept.
    Succeeded,
    /// The execution failed, and the next caller may execute the operation again.
    FailedRetryable,
    /// The operation failed for good; duplicates get the failure.
    FailedFinal,
    /// The record was given up, by its owner or by an operator, and counts as absent. It is kept for its epoch only.
    Released,
}

impl State {
    /// Every state.
    pub const ALL: [State; 5] =
        [State::InProgress, State::Succeeded, State::FailedRetryable, State::FailedFinal, State::Released];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            State::InProgress => "IN_PROGRESS",
            State::Succeeded => "SUCCEEDED",
            State::FailedRetryable => "FAILED_RETRYABLE",
            State::FailedFinal => "FAILED_FINAL",
            State::Released => "RELEASED",
        }
    }

    /// The state with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        State::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether duplicates get the stored result.
    pub const fn is_final(self) -> bool {
        matches!(self, State::Succeeded | State::FailedFinal)
    }
}

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The hash of the request that the key stands for.
    pub request_hash: RequestHash,
    /// Its state.
    pub state: State,
    /// Its current or last owner.
    pub owner: Owner,
    /// When another execution may take over, if this one has not ended by then.
    pub lease_until: Timestamp,
    /// How long the record is kept after its end.
    pub retention: Duration,
    /// When the owner reserved it.
    pub started_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// From this time on it counts as absent.
    pub expires_at: Timestamp,
    /// The result that duplicates get.
    pub completion: Completion,
}

impl Record {
    /// Whether a caller can see it: it has not expired and was not given up.
    pub fn is_present(&self, now: Timestamp) -> bool {
        self.state != State::Released && now < self.expires_at
    }

    /// Whether this execution reserved it as [complete at once](super::Reserve::is_complete). Such a record has no lease and
    /// no result.
    pub fn was_complete_at_once_by(&self, execution: ExecutionId) -> bool {
        self.state == State::Succeeded
            && self.owner.execution == execution
            && self.lease_until == self.started_at
            && self.completion == Completion::default()
    }

    /// The same record without the bytes of its response's body.
    #[must_use]
    pub fn without_body(mut self) -> Self {
        if let Some(response) = &mut self.completion.response {
            response.body = std::mem::take(&mut response.body).without_bytes();
        }
        self
    }

    /// Whether its owner may still be at work.
    pub fn is_leased(&self, now: Timestamp) -> bool {
        self.state == State::InProgress && now < self.lease_until
    }
}

/// The result of an execution: a response, a reference to what was made, both, or neither.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Completion {
    /// The response that duplicates get.
    pub response: Option<Response>,
    /// The object that the operation made.
    pub resource: Option<Resource>,
}

/// A response to replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The header fields that the caller chose to keep.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
}

/// A reference to the object that an operation made, such as `payment` and `pay_123`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    kind: String,
    id: String,
}

/// Why a reference is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    /// The type is empty, too long, or has control characters.
    #[error("must be 1 to {} characters without control characters", Resource::KIND_CHARS)]
    Kind,
    /// The id is empty, too long, or has control characters.
    #[error("must be 1 to {} characters without control characters", Resource::ID_CHARS)]
    Id,
}

impl Resource {
    /// The most characters of a type.
    pub const KIND_CHARS: usize = 100;
    /// The most characters of an id.
    pub const ID_CHARS: usize = 500;

    /// Checks both parts.
    pub fn try_new(kind: impl Into<String>, id: impl Into<String>) -> Result<Self, ResourceError> {
        let (kind, id) = (kind.into(), id.into());
        let is_valid =
            |text: &str, most| !text.is_empty() && text.chars().count() <= most && !text.chars().any(char::is_control);
        match (is_valid(&kind, Self::KIND_CHARS), is_valid(&id, Self::ID_CHARS)) {
            (false, _) => Err(ResourceError::Kind),
            (true, false) => Err(ResourceError::Id),
            (true, true) => Ok(Resource { kind, id }),
        }
    }

    /// The type of the object.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }
}
