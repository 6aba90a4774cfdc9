//! Redis as the schedule: an index of due work beside the store, and what the guards of all processes count.
//!
//! [`Scheduled`] is a [`Store`](redrive_store::Store) around another one that several processes share. It keeps the
//! pending tasks of every lane in Redis, by when they are due, takes due work from there, and has the store confirm each
//! claim: the store is the truth, Redis is an index that may be flushed, restarted, evicted or lost at any moment.
//! [`Schedule`] is that index; [`Address`] is where it is.
//!
//! Not here: any task's state (that is the store's), any decision about retrying (`redrive-core`).

#![forbid(unsafe_code)]

mod address;
mod connect;
mod failure;
mod guards;
mod keeper;
mod keys;
mod link;
mod member;
mod news;
mod options;
mod partitions;
mod pending_changes;
mod rebuild;
mod schedule;
mod scheduled;
mod script;
mod state;
mod suspects;
mod underway;
mod writer;

pub use address::{Address, InvalidAddress};
pub use failure::Failure;
pub use keys::{InvalidPrefix, Partition};
pub use options::Options;
pub use partitions::InUse;
pub use schedule::{Builder, Gone, NotAdded, Schedule, Take, Taken, Turn};
pub use scheduled::{NotShared, Scheduled};

// The client's TLS finds its cryptography through this crate's features.
use rustls as _;
