//! The pure domain of Redrive: tasks, policies, the classification of answers, and the decision what happens next.
//!
//! Nothing here reads a clock, draws a random number or does I/O: `now` and `unit` (uniform in [0, 1)) are arguments.
//! So the same decisions run in the service, in a library and in a simulator.
//!
//! Not here: the retry standard (`redrive-standard`), how tasks are stored (`redrive-store`), when they are picked up
//! (`redrive-engine`), how they are sent (`redrive-transport`).

#![forbid(unsafe_code)]

pub mod alerts;
pub mod attempt;
pub mod backoff;
pub mod body;
pub mod classify;
mod counted;
pub mod date;
pub mod decide;
pub mod duration;
pub mod guards;
pub mod health;
pub mod id;
pub mod idempotency;
pub mod jitter;
pub mod latency;
pub mod policy;
pub mod request;
pub mod retry_after;
pub mod retry_span;
pub mod task;
mod task_id_prefix;
pub mod time;
pub mod timetable;
pub mod trace;

pub use attempt::{Answer, Attempt, ErrorType, Outcome};
pub use body::{Body, BodyHash, BodyRef};

pub use classify::Verdict;
pub use counted::counted;
pub use date::Date;
pub use decide::Decision;
pub use id::{
    Consumer, CorrelationId, Dependency, IdempotencyKey, Lane, OperationName, PolicyId, RecordName, TaskId, TenantId,
};
pub use latency::Latency;
pub use policy::Policy;
pub use request::Request;
pub use retry_span::RetrySpan;
pub use task::{Class, Reason, Status, Task};
pub use task_id_prefix::{NotAPrefix, TaskIdPrefix};
pub use time::Timestamp;
pub use trace::TraceParent;
