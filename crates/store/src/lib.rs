//! The contract of a Redrive store, and everything that is common to all stores.
//!
//! [`Store`] is the contract, concept by concept: [`Tasks`], [`Upkeep`], [`Reads`], [`Policies`], [`Blobs`],
//! [`Records`], [`LaneControls`], [`Health`]; a store with one owner also has [`GuardStates`]. [`SharedStore`] has the additional calls
//! of a store for several processes. `conformance` (with the feature of that name) is the suite that every
//! implementation runs. [`rules`] decides what a call does to one task, [`memory`] is the store without a disk,
//! [`group_commit`] is the single writer that lets a thousand callers share one fsync.
//!
//! Not here: any database (`redrive-store-sqlite` and its siblings), any decision about retrying (`redrive-core`).

#![forbid(unsafe_code)]

mod blob_storage_id;
mod blobs;
mod commit_counts;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod departed_nodes;
pub mod encoding;
mod error;
pub mod group_commit;
mod guard_states;
mod health;
mod liveness;
pub mod memory;
mod policies;
mod reads;
mod records;
pub mod rules;
mod shared;
mod shared_guards;
mod store;
mod tasks;
mod upkeep;

pub use blob_storage_id::{BlobStorageId, InvalidBlobStorageId};
pub use blobs::*;
pub use commit_counts::{CommitCounter, CommitCounts, CommitHistogram};
pub use departed_nodes::DepartedNodes;
pub use error::Error;
pub use guard_states::*;
pub use health::*;
pub use liveness::{Liveness, LivenessGuard};
pub use memory::MemoryStore;
pub use policies::*;
pub use reads::*;
pub use records::*;
pub use shared::*;
pub use shared_guards::*;
pub use store::Store;
pub use tasks::*;
pub use upkeep::*;
