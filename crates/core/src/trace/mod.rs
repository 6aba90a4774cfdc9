//! Distributed traces: W3C Trace Context, and which trace and spans a task has.
//!
//! A task belongs to the trace that its caller named in `traceparent`. Without one the trace has the 128 bits of the
//! task's id. The ids of a task's spans are hashes of the task's id ([`span_of_run`], [`span_of_attempt`]), so they are the
//! same after a restart and on every node, and nothing of them is stored.
//!
//! | file | its job |
//! | --- | --- |
//! | `id` | ids of traces and spans |
//! | `parent` | `traceparent`: parsing by the W3C rules, and writing |
//! | `caller` | what a caller's header fields say: `traceparent`, `tracestate`, `baggage` |
//! | `spans` | the trace of a task, and the ids of its spans |
//! | `sampler` | which traces are recorded |
//!
//! Not here: spans with their times and attributes, and how they are exported (`redrive-traces`).

mod caller;
mod id;
mod parent;
mod sampler;
mod spans;

pub use caller::{CallerContext, MAX_BAGGAGE, MAX_TRACE_STATE, Propagators, is_trace_field};
pub use id::{SpanId, TraceId};
pub use parent::{Flags, InvalidTraceParent, TraceParent};
pub use sampler::{Ratio, Sampler, Undecided};
pub use spans::{attempt_context, span_of_attempt, span_of_run, trace_of};
