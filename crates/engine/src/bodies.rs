//! Storage of bodies that are too large to be kept with their task (injected).
//!
//! The server keeps bodies and the transport opens them. The engine itself only deletes those that no task refers to
//! any more (`collector`).

use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::Stream;
use redrive_core::{BodyHash, BodyRef, TenantId, Timestamp};
use redrive_store::{Blob, Error};

/// A body as a stream of pieces. Nothing follows an error.
pub type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send>>;

/// Storage of large bodies.
#[async_trait]
pub trait Bodies: Send + Sync + 'static {
    /// Stores the stream, at most `limit` bytes of it, and holds no more than a few pieces in memory. When this
    /// returns, the body survives power loss, and a task may refer to it for the grace period.
    async fn keep(&self, tenant: &TenantId, pieces: Pieces, limit: u64) -> Result<BodyRef, BodyError>;

    /// Returns the body with this content, if it is stored and its object exists.
    async fn find(&self, tenant: &TenantId, hash: BodyHash) -> Result<Option<BodyRef>, BodyError>;

    /// Opens the body for reading. Returns once its size has been checked. The last piece comes only after the hash has
    /// been checked: a reader gets exactly what was stored, or an error.
    async fn open(&self, tenant: &TenantId, body: &BodyRef) -> Result<Pieces, BodyError>;

    /// Deletes a blob's object. A missing object is no error.
    async fn delete(&self, blob: &Blob) -> Result<(), BodyError>;

    /// Deletes what uploads that broke off before this moment left behind. Returns how many there were.
    async fn delete_unfinished(&self, before: Timestamp) -> Result<usize, BodyError>;

    /// Checks that this is still the location where bodies are stored. The error is the reason why a body could not be
    /// stored there.
    async fn check(&self) -> Result<(), BodyError> {
        Ok(())
    }
}

/// Why a body could not be kept or read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BodyError {
    /// The object does not exist.
    #[error("the stored body is not there")]
    Missing,
    /// The object is not what was stored.
    #[error("the stored body is damaged: {0}")]
    Damaged(String),
    /// Object storage cannot be reached or used right now.
    #[error("object storage is unavailable: {0}")]
    Unavailable(String),
    /// The body is larger than allowed.
    #[error("the body is larger than {limit} bytes")]
    TooLarge {
        /// The most bytes that a body may have.
        limit: u64,
    },
    /// The upload broke off before the end of the body.
    #[error("the body broke off: {0}")]
    BrokenOff(String),
    /// The store, which tracks every body, failed.
    #[error(transparent)]
    Store(#[from] Error),
}
