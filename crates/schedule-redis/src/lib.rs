//! Redis as the schedule: an index of due tasks beside the store.
//!
//! [`Scheduled`] is a [`Store`](redrive_store::Store) that wraps another store which several processes share. It keeps
//! the pending tasks of every lane in Redis, by due time, takes due tasks from there, and lets the store confirm each
//! claim. The store decides. Redis is an index that may be flushed, restarted, evicted or lost at any time, and is
//! rebuilt from the store. [`Schedule`] is that index; [`Address`] is its address.
//!
//! Not here: the state of any task or guard (see the store), any decision about retrying (`redrive-core`).

#![forbid(unsafe_code)]

mod address;
mod claimed_queues;
mod connect;
mod index_repair;
mod keys;
mod link;
mod member;
mod news;
mod options;
mod partitions;
mod pending_changes;
mod rebuild;
mod redis_call_error;
mod schedule;
mod scheduled;
mod script;
mod stale_queues;
mod state;
mod writer;

pub use address::{Address, InvalidAddress};
pub use keys::{InvalidPrefix, Partition};
pub use options::Options;
pub use partitions::InUse;
pub use redis_call_error::RedisCallError;
pub use schedule::{Builder, Gone, NotAdded, Schedule, Take, Taken, Turn};
pub use scheduled::{NotShared, Scheduled};

// Selects the cryptography of the client's TLS through this crate's features.
use rustls as _;
