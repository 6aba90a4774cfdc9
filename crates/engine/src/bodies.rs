//! Bodies that are too large to be a part of their task, injected: kept, read and deleted elsewhere.
//!
//! Keeping and opening are for those who take bodies in and send them (the server, the transport). The engine itself only
//! deletes what nobody needs any more (`collector`).

use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::Stream;
use redrive_core::{BodyHash, BodyRef, TenantId, Timestamp};
use redrive_store::{Blob, Error};

/// A body, piece by piece. Nothing comes after an error.
pub type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send>>;

/// Where large bodies are kept.
#[async_trait]
pub trait Bodies: Send + Sync + 'static {
    /// Keeps what comes, at most `limit` bytes of it, and holds no more than a few pieces in memory. When this answers, it
    /// survives power loss, and a task may refer to it for a while.
    async fn keep(&self, tenant: &TenantId, pieces: Pieces, limit: u64) -> Result<BodyRef, BodyError>;

    /// The body with this content, if it is kept and its object is there.
    async fn find(&self, tenant: &TenantId, hash: BodyHash) -> Result<Option<BodyRef>, BodyError>;

    /// The body's bytes. Answers once it is known that there are as many of them as there should be. The last piece comes
    /// only after the hash has been found right, so whoever got all pieces got what was kept, and else an error.
    async fn open(&self, tenant: &TenantId, body: &BodyRef) -> Result<Pieces, BodyError>;

    /// Deletes a blob's object; one that is not there is no error.
    async fn delete(&self, blob: &Blob) -> Result<(), BodyError>;

    /// Deletes what uploads that never came to their end left behind before this moment; says how many there were.
    async fn delete_unfinished(&self, before: Timestamp) -> Result<usize, BodyError>;

    /// Whether this is still the place that bodies are kept in. An error says why a body would not be taken there.
    async fn check(&self) -> Result<(), BodyError> {
        Ok(())
    }
}

/// Why a body could not be kept or read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BodyError {
    /// The object is not there.
    #[error("the stored body is not there")]
    Missing,
    /// The object is not what was put there.
    #[error("the stored body is damaged: {0}")]
    Damaged(String),
    /// Object storage cannot be reached or used right now.
    #[error("object storage is unavailable: {0}")]
    Unavailable(String),
    /// There is more of it than is allowed.
    #[error("the body is larger than {limit} bytes")]
    TooLarge {
        /// The most bytes that it may have.
        limit: u64,
    },
    /// Whoever brought the body did not bring all of it.
    #[error("the body broke off: {0}")]
    BrokenOff(String),
    /// The store, which has to know of every body, failed.
    #[error(transparent)]
    Store(#[from] Error),
}
