//! The embedded SQLite store: one directory, one database, one process.
//!
//! Writes go through one thread that commits everything in its queue ([`redrive_store::group_commit`]). Reads have
//! their own threads and connections. A third kind of thread, the checkpointer, moves committed pages from the
//! write-ahead log into the database file, so that no commit has to.
//!
//! Modules: `ops` has one file per operation of the contract, with its SQL. `writer` is what the writing thread owns:
//! the connection, and the memory that must follow every rollback, which is `names` (small integers for lanes, policy
//! versions and operations), `keys` (the newest idempotency keys, of tasks and of records), `in_flight` and `counters`.
//! `schema` has the tables and their migrations. `codec` converts rows into the domain's types.
//!
//! Not here: any decision about retrying, any clock. The only decision of this crate is to end the process when the
//! disk reports a failed sync (`failure`).

#![forbid(unsafe_code)]

mod bulk;
mod checkpointer;
mod codec;
mod connection;
mod contract;
mod counters;
mod in_flight;
mod keys;
mod location;
mod lock;
mod names;
mod open;
mod ops;
mod options;
mod pending_guards;
mod readers;
mod schema;
mod sqlite_error;
mod store;
mod writer;

pub use open::OpenError;
pub use options::Options;
pub use store::SqliteStore;
