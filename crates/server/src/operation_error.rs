//! Why an operation failed. Nothing here knows of HTTP: `rest::problem` maps each failure to problem details.

use std::time::Duration;

use redrive_core::idempotency::{RecordKey, State};
use redrive_core::task::PolicyRef;
use redrive_core::{PolicyId, Status, TaskId, Timestamp};
use redrive_engine::bodies::BodyError;
use redrive_store as store;

use crate::live_events::EventId;
use crate::wire::{FieldFault, Malformed, ShownFinding};

/// Why an operation failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OperationError {
    /// The document is not JSON, or does not match its schema.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Values of the document are invalid; at least one fault.
    #[error("{}", list(.0))]
    Invalid(Vec<FieldFault>),
    /// The document breaks the retry standard, which is enforced here; at least one finding.
    #[error("breaks {} of the retry standard", rules(.0))]
    BreaksStandard(Vec<ShownFinding>),
    /// A part of the document is larger than is allowed.
    #[error("{field} is larger than {limit_bytes} bytes")]
    TooLarge {
        /// Which part.
        field: String,
        /// The most bytes that it may have.
        limit_bytes: usize,
    },
    /// Two different idempotency keys were given for one submission.
    #[error("the document's idempotencyKey and the Idempotency-Key header differ")]
    KeysDiffer,
    /// What was given as an idempotency key is not one.
    #[error("{field} {message}")]
    InvalidKey {
        /// Where it was given.
        field: String,
        /// The rule that it breaks.
        message: String,
    },
    /// The idempotency key belongs to a task with another request.
    #[error("the idempotency key belongs to task {0}, which has another request")]
    KeyReused(TaskId),
    /// The idempotency key belongs to a record of another request.
    #[error("the idempotency key was used for another request")]
    RecordKeyReused,
    /// Another execution of the operation is under way.
    #[error("another execution with this key is under way; unless it ends before, another one may take over in {} s", seconds(*.retry_in))]
    RecordInProgress {
        /// The record.
        key: RecordKey,
        /// When another execution may take over.
        lease_until: Timestamp,
        /// When that is, from now on.
        retry_in: Duration,
    },
    /// Another execution owns the record.
    #[error("another execution owns the record, or did since: nothing was changed")]
    Fenced,
    /// The record of this owner has ended before, in another way.
    #[error("the record of this execution has ended before and is {}: nothing was changed", .0.name())]
    RecordEnded(State),
    /// There is no such record.
    #[error("there is no idempotency record {0:?}")]
    NoSuchRecord(String),
    /// The record has changed since the caller saw it.
    #[error("the record is not the one that If-Match names: it has changed since")]
    RecordChanged,
    /// The time is not known well enough to judge leases.
    #[error("this node's time is uncertain at the moment, so it cannot judge whether a lease is over")]
    TimeUncertain,
    /// There is no task with this idempotency key.
    #[error("there is no task with the idempotency key {0:?}")]
    NoTaskWithKey(String),
    /// A submission names a policy that does not exist.
    #[error("there is no policy {id:?}")]
    UnknownPolicy {
        /// The field that names it.
        field: String,
        /// The name.
        id: String,
    },
    /// A submission refers to a body that is not stored.
    #[error("there is no stored body {body_ref}; upload it first")]
    UnknownBody {
        /// The field that refers to it.
        field: String,
        /// The reference.
        body_ref: String,
    },
    /// There is no such stored body.
    #[error("there is no stored body {0:?}")]
    NoSuchBody(String),
    /// A body could not be stored or read.
    #[error(transparent)]
    Bodies(BodyError),
    /// No storage for large bodies is configured.
    #[error("no storage for large bodies is configured; start every node with --blobs")]
    NoBodyStorage,
    /// There is no such task.
    #[error("there is no task {0:?}")]
    NoSuchTask(String),
    /// There is no such policy.
    #[error("there is no policy {0:?}")]
    NoSuchPolicy(String),
    /// This node knows nothing of the dependency.
    #[error("this node knows no task of dependency {0:?}, and nothing is set for it; check the spelling")]
    NoSuchDependency(String),
    /// Something is set for very many dependencies already.
    #[error("something is set for {most} dependencies already; remove what is not needed first")]
    TooManyControls {
        /// The most that are allowed.
        most: usize,
    },
    /// There is no such silence.
    #[error("there is no silence {0:?}, or it has ended")]
    NoSuchSilence(String),
    /// There are very many silences already.
    #[error("there are {most} silences already; end what is not needed first")]
    TooManySilences {
        /// The most that are allowed.
        most: usize,
    },
    /// There is no such sink of alerts.
    #[error("there is no sink {name:?}; {}", if names.is_empty() { "none is configured".into() } else { format!("there are: {names}") })]
    NoSuchSink {
        /// The name that was given.
        name: String,
        /// Those that are configured.
        names: String,
    },
    /// No events are kept.
    #[error("this node keeps no events: it was started with --events 0")]
    EventsOff,
    /// An id that no event of this process has yet.
    #[error("no event has the id {id} yet")]
    FutureEvent {
        /// The id.
        id: EventId,
    },
    /// Very many readers follow events already.
    #[error("{most} readers follow the events of this node already, the most that are allowed; try again later")]
    TooManyReaders {
        /// The most that are allowed.
        most: usize,
    },
    /// The circuit breaker is turned off.
    #[error("the circuit breaker is turned off on this server; pause the dependency instead")]
    BreakerOff,
    /// The task has ended: it can be neither cancelled nor brought forward.
    #[error("task {id} has already ended {}", status.as_str())]
    TaskEnded {
        /// The task.
        id: TaskId,
        /// How it ended.
        status: Status,
    },
    /// An attempt of the task is under way.
    #[error("an attempt of task {0} is already under way")]
    TaskInFlight(TaskId),
    /// The task is not a dead letter, so there is nothing to replay.
    #[error("task {id} is {}; only a task that ended FAILED or EXHAUSTED can be replayed", status.as_str())]
    TaskNotDead {
        /// The task.
        id: TaskId,
        /// Where it stands.
        status: Status,
    },
    /// The policy version that the task uses was deleted.
    #[error(
        "task {task} uses version {} of policy {}, which was deleted",
        policy.version,
        policy.id
    )]
    PolicyGone {
        /// The task.
        task: TaskId,
        /// The version that is gone.
        policy: PolicyRef,
    },
    /// Tasks that have not ended use the policy.
    #[error("{tasks} tasks that have not ended use policy {id}")]
    PolicyInUse {
        /// The policy.
        id: PolicyId,
        /// How many tasks.
        tasks: u64,
    },
    /// The policy applies to tasks that name none, or is built in.
    #[error("policy {0} is built in: it can be changed but not deleted")]
    PolicyProtected(PolicyId),
    /// The policy is not at the version that the caller expected.
    #[error("the policy is not at the expected version")]
    VersionMismatch {
        /// The version it is at, if there is one.
        current: Option<u32>,
    },
    /// The service is about to stop.
    #[error("the service is stopping")]
    Stopping,
    /// The breaker of the dependency is open, and the caller waits for the answer.
    #[error("the circuit breaker of {dependency} is open: it is called again in {} s at the earliest", retry_in.as_secs())]
    DependencyUnavailable {
        /// The dependency.
        dependency: String,
        /// When the breaker begins to probe, from now on.
        retry_in: Duration,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl OperationError {
    /// One invalid value.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        OperationError::Invalid(vec![FieldFault { field: field.into(), message: message.into() }])
    }

    /// The same failure with its fields named from the document that this one is a part of, such as `tasks[3]`.
    #[must_use]
    pub fn within(self, outer: &str) -> Self {
        let inside = |field: String| format!("{outer}.{field}");
        match self {
            OperationError::Malformed(Malformed::Shape { field, message }) => {
                let field = Some(field.map_or_else(|| outer.to_owned(), inside));
                OperationError::Malformed(Malformed::Shape { field, message })
            }
            OperationError::Invalid(faults) => OperationError::Invalid(
                faults.into_iter().map(|fault| FieldFault { field: inside(fault.field), ..fault }).collect(),
            ),
            OperationError::BreaksStandard(findings) => OperationError::BreaksStandard(
                findings.into_iter().map(|finding| ShownFinding { field: inside(finding.field), ..finding }).collect(),
            ),
            OperationError::TooLarge { field, limit_bytes } => {
                OperationError::TooLarge { field: inside(field), limit_bytes }
            }
            OperationError::InvalidKey { field, message } => {
                OperationError::InvalidKey { field: inside(field), message }
            }
            OperationError::UnknownPolicy { field, id } => OperationError::UnknownPolicy { field: inside(field), id },
            OperationError::UnknownBody { field, body_ref } => {
                OperationError::UnknownBody { field: inside(field), body_ref }
            }
            other => other,
        }
    }
}

impl From<BodyError> for OperationError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Store(error) => OperationError::Store(error),
            BodyError::TooLarge { limit } => OperationError::TooLarge {
                field: "body".into(),
                limit_bytes: usize::try_from(limit).unwrap_or(usize::MAX),
            },
            error => OperationError::Bodies(error),
        }
    }
}

/// Whole seconds, rounded up, at least 1.
pub(crate) fn seconds(wait: Duration) -> u128 {
    wait.as_millis().div_ceil(1_000).max(1)
}

fn rules(findings: &[ShownFinding]) -> String {
    let broken = findings.iter().filter(|finding| finding.breaks_a_must);
    let mut rules: Vec<&str> = broken.map(|finding| finding.rule).collect();
    rules.dedup();
    rules.join(", ")
}

fn list(faults: &[FieldFault]) -> String {
    let each: Vec<String> = faults.iter().map(|fault| format!("{} {}", fault.field, fault.message)).collect();
    each.join("; ")
}
