//! The transactional outbox for Rust programs: a task in the caller's own transaction, in the PostgreSQL database that
//! Redrive keeps its tasks in. It exists if and only if that transaction commits.
//!
//! | module | for whom |
//! | --- | --- |
//! | `tokio_postgres` (feature `tokio-postgres`) | programs that use that driver: any of its clients or transactions |
//! | `sqlx` (feature `sqlx`) | programs that use that one: a connection or a transaction |
//!
//! Both run the same statement, a call of the SQL function `redrive.enqueue` that the store's schema brings along. It
//! judges a request as the API does, knows a key that was used there, and wakes the service at the commit.
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
