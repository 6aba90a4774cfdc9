//! OpenTelemetry traces: a span for every run of a task and for every attempt, exported over OTLP.
//!
//! [`Traces`] is a sink of the engine's events. It notes what a span needs in a bounded queue, and never waits. A task of
//! its own encodes what is queued and sends it. What does not fit into the queue, or cannot be sent, is dropped and counted:
//! an export never delays a task, and what waits for it never grows.
//!
//! | file | its job |
//! | --- | --- |
//! | `settings` | where to, how often, how much |
//! | `traces` | [`Traces`]: the sink, and the handle that flushes and stops the export |
//! | `record` | what a span is made from |
//! | `queue` | the records that wait for the next export |
//! | `exporter` | batches, retries, and the report of what was dropped |
//! | `client` | one request to the receiver |
//! | `otlp` | the messages of OTLP, and the spans as such |
//!
//! Not here: the ids of traces and spans, `traceparent`, sampling (`redrive_core::trace`); reading the environment.

#![forbid(unsafe_code)]

mod client;
mod exporter;
mod otlp;
mod queue;
mod record;
mod settings;
mod traces;

pub use settings::{Batches, Headers, InvalidReceiver, Receiver, Settings};
pub use traces::{SpanCounts, Traces};
