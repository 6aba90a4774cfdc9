//! The embedded store: one directory, one SQLite database, one process.
//!
//! Writes go through one thread that commits whatever is queued ([`redrive_store::group_commit`]); reads have threads
//! and connections of their own; a third party, the checkpointer, moves what was committed from the write-ahead log
//! into the database file, so that no commit has to.
//!
//! Where things are: `ops` has one file per operation of the contract, with its SQL. `writer` is what the writing
//! thread owns: the connection, and what must follow every rollback in memory: `names` (small integers for lanes and
//! policy versions), `keys` (the newest idempotency keys), `in_flight` and `counters`. `schema` is the tables and how
//! they came to be. `codec` turns rows into the domain's types.
//!
//! Not here: any decision about retrying, any clock. The one thing this crate decides alone is to end the process when
//! the disk reports a failed sync (`failure`).

#![forbid(unsafe_code)]

mod bulk;
mod checkpointer;
mod codec;
mod connection;
mod contract;
mod counters;
mod failure;
mod in_flight;
mod keys;
mod location;
mod lock;
mod names;
mod open;
mod ops;
mod options;
mod readers;
mod schema;
mod store;
mod writer;

pub use open::OpenError;
pub use options::Options;
pub use store::SqliteStore;
