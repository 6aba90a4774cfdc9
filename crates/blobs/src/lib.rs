//! Stores large bodies in object storage: a directory, or any service with the S3 API.
//!
//! | file | its job |
//! | --- | --- |
//! | `location` | the setting: which storage, and where in it |
//! | `blobs` | [`Blobs`]: stores, reads and deletes bodies for the server, the transport and the engine |
//! | `bucket`, `directory` | the two kinds of storage |
//! | `object_names` | the names of objects |
//! | `marker` | the object with the identity of this storage |
//! | `identity` | checks that this is still the same storage as at the start |
//! | `permissions` | files and directories that only their owner can read |
//! | `upload` | receives a body piece by piece and hashes it |
//! | `verified` | reads a body, and withholds its last piece unless its hash is right |
//! | `unfinished_uploads` | deletes what interrupted uploads left behind |
//! | `connector` | the HTTP client for S3 |
//! | `failure` | errors, and what they mean to the engine |
//!
//! An object's name is the hash of its content and a random number. The store records that name before the object gets
//! it; decision 0012 explains why deleting is safe because of that.
//!
//! Not here: which bodies are still needed (`redrive-store`), when to delete the others (`redrive-engine`).

#![forbid(unsafe_code)]

mod blobs;
mod bucket;
mod connector;
mod directory;
mod failure;
mod identity;
mod location;
mod marker;
mod object_names;
mod permissions;
mod unfinished_uploads;
mod upload;
mod verified;

#[cfg(test)]
#[path = "../tests/support/s3.rs"]
mod s3;

pub use blobs::{Blobs, Parts};
pub use failure::{OpenError, StorageError};
pub use location::{Credentials, InvalidLocation, Location};
