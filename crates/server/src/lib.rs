//! The operations of Redrive, and the REST API over them.
//!
//! | module | its job |
//! | --- | --- |
//! | [`operations`] | the operations, one file each, over the engine's handle |
//! | [`wire`] | the JSON documents of requests and answers, and their schemas |
//! | [`Caller`] | who calls an operation: a tenant and a name |
//! | [`alerts`] | what the service tells people about by itself: rules, sinks, silences |
//! | [`idempotency`] | settings, counters and waiting callers of idempotency records |
//! | `intake` | validates submissions and reservations, and makes values of them that the engine and the store accept |
//! | [`live_events`] | the last events of this node, for those who follow them live |
//! | [`HealthWindows`] | counts the tasks that ended in the last hour, for the health report |
//! | [`metrics`] | what Prometheus reads: counts of the engine's events, and readings of its state |
//! | `percent` | strict percent-decoding |
//! | `standard` | which rules of the retry standard a policy breaks, and whether that is refused |
//! | [`rest`] | HTTP: connections, routes, problem details, `/openapi.json`, the reference page |
//!
//! Not here: how tasks are retried (`redrive-core`), kept (`redrive-store`) or sent (`redrive-transport`); where the
//! service listens (`redrive`).

#![forbid(unsafe_code)]

pub mod alerts;
mod app;
mod caller;
mod health_windows;
pub mod idempotency;
mod intake;
pub mod live_events;
pub mod metrics;
mod operation_error;
pub mod operations;
mod percent;
pub mod rest;
mod standard;
pub mod wire;

pub use app::{App, Limits};
pub use caller::Caller;
pub use health_windows::HealthWindows;
pub use live_events::LiveEvents;
pub use operation_error::OperationError;
pub use rest::serve;
pub use standard::Standard;
