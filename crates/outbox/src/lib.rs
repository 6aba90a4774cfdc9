//! The transactional outbox for Rust programs: enqueues a task in the caller's own transaction, in the PostgreSQL
//! database of Redrive. The task exists if and only if that transaction commits.
//!
//! | module | driver |
//! | --- | --- |
//! | `tokio_postgres` (feature `tokio-postgres`) | `tokio_postgres`: any of its clients or transactions |
//! | `sqlx` (feature `sqlx`) | `sqlx`: a connection or a transaction |
//!
//! Both run the same statement, a call of the SQL function `redrive.enqueue` of the store's schema. It validates a
//! request like the API, recognises a key that was used there, and wakes the service at the commit.
//!
//! Not here: a database other than Redrive's own (`redrive outbox relay` is for that), connections, transactions.

#![forbid(unsafe_code)]

mod enqueue;
mod error;
#[cfg(feature = "sqlx")]
pub mod sqlx;
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
mod statement;
#[cfg(feature = "tokio-postgres")]
pub mod tokio_postgres;

pub use enqueue::{Body, Enqueue};
pub use error::Error;
pub use redrive_core::TaskId;
