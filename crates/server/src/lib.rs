//! What callers can ask of Redrive, and the REST API that lets them ask.
//!
//! | module | its job |
//! | --- | --- |
//! | [`operations`] | what can be asked for, one file each, over the engine's handle |
//! | [`wire`] | the JSON documents that go in and out, and their schemas |
//! | [`Caller`] | who calls an operation: a tenant and a name |
//! | `intake` | from a submission as it was written to a draft that the engine accepts |
//! | `percent` | strict percent-decoding |
//! | `standard` | what of the retry standard a policy breaks, and whether that is refused |
//! | [`rest`] | HTTP: connections, routes, problem details, `/openapi.json`, the reference page |
//!
//! Not here: how tasks are retried (`redrive-core`), kept (`redrive-store`) or sent (`redrive-transport`); where the
//! service listens (`redrive`).

#![forbid(unsafe_code)]

mod app;
mod caller;
mod failure;
mod intake;
pub mod operations;
mod percent;
pub mod rest;
mod standard;
pub mod wire;

pub use app::{App, Limits};
pub use caller::Caller;
pub use failure::Failure;
pub use rest::serve;
pub use standard::Standard;
