//! Redrive in the caller's own transaction, for Rust programs: the transactional outbox, idempotency records, and the inbox
//! of a consumer. Everything is in the PostgreSQL database of Redrive, and exists if and only if that transaction commits.
//!
//! | module | driver |
//! | --- | --- |
//! | `tokio_postgres` (feature `tokio-postgres`) | `tokio_postgres`: any of its clients or transactions |
//! | `sqlx` (feature `sqlx`) | `sqlx`: a connection or a transaction |
//!
//! Each has `enqueue`, which stores a task; `reserve`, `complete`, `fail` and `release`, which let an operation take place once for
//! a key; and `seen`, which tells whether an event was handled before. Both drivers run the same statements, calls of the
//! SQL functions of the store's schema. These validate like the API, and recognise keys and events that were used there.
//!
//! Not here: a database other than Redrive's own (`redrive outbox relay` and the API are for that), connections,
//! transactions.

#![forbid(unsafe_code)]

mod enqueue;
mod error;
mod record;
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
mod record_statement;
#[cfg(feature = "sqlx")]
pub mod sqlx;
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
mod statement;
#[cfg(feature = "tokio-postgres")]
pub mod tokio_postgres;

pub use enqueue::{Body, Enqueue};
pub use error::Error;
pub use record::{
    Completion, Ended, Event, Failure, PreviousState, Reservation, Reserve, Reserved, Resource, Response,
};
pub use redrive_core::TaskId;
pub use redrive_core::idempotency::request_hash::{Comparison, HashedRequest, InvalidRequestHash};
pub use redrive_core::idempotency::{ExecutionId, RequestHash};
