//! Large bodies, kept in object storage: a directory, or anything that speaks S3.
//!
//! | file | its job |
//! | --- | --- |
//! | `location` | what the setting says: which storage, and where in it |
//! | `blobs` | [`Blobs`], what the server, the transport and the engine hold |
//! | `bucket`, `directory` | the two kinds of storage |
//! | `place` | the names of objects |
//! | `marker` | the object that says which place this is |
//! | `identity` | whether this is still the place that it was at the start |
//! | `private` | files and directories that only their owner can read |
//! | `upload` | taking a body in, piece by piece, hashed on the way |
//! | `verified` | giving a body out, and never the last piece of a wrong one |
//! | `unfinished` | what uploads that broke off left behind |
//! | `connector` | the HTTP client that S3 is spoken over |
//! | `failure` | what went wrong, in the engine's terms |
//!
//! An object is named by what is in it and by a random number, and that name is known to the store before the object is in
//! its place; decision 0012 says why that makes deleting safe.
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
mod place;
mod private;
mod unfinished;
mod upload;
mod verified;

#[cfg(test)]
#[path = "../tests/support/s3.rs"]
mod s3;

pub use blobs::{Blobs, Parts};
pub use failure::{OpenError, PlaceError};
pub use location::{Credentials, InvalidLocation, Location};
