//! Records of the objects in blob storage that hold request and answer bodies.
//!
//! The bytes are in blob storage (`redrive-blobs`). This module records only which object holds which content, and
//! whether the object may be deleted.

use async_trait::async_trait;
use redrive_core::{BodyHash, BodyRef, TenantId, Timestamp};

use crate::Error;

/// Keeps track of the objects that hold bodies.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Records an object for this content and returns the recorded one: an existing object for the same content, or
    /// else `fresh`. The object is kept while a task or a record refers to it, and for a while after `now` even without one.
    /// Called *before* the object is written under its name, so that every object in storage is or was recorded here.
    async fn adopt(&self, tenant: TenantId, fresh: BodyRef, now: Timestamp) -> Result<BodyRef, Error>;

    /// The object that is recorded for this content.
    async fn find(&self, tenant: TenantId, hash: BodyHash) -> Result<Option<BodyRef>, Error>;

    /// Condemns blobs that were last adopted before `adopted_before` and that no task and no record refers to. Looks at no more than
    /// `limit` blobs after `after`. Nothing can refer to a condemned blob from that commit on, so its object may be
    /// deleted at any later time. Every pass returns it again until it is [forgotten](Blobs::forget).
    ///
    /// This and the calls that refer to a blob (`submit`, `settle`, `Records::change`) must exclude each other for the same blob: the one that commits second reads what the first
    /// one wrote.
    async fn condemn(&self, adopted_before: Timestamp, after: Option<Blob>, limit: usize) -> Result<Condemned, Error>;

    /// Deletes the records of condemned blobs whose objects have been deleted. A blob that is not condemned stays.
    async fn forget(&self, blobs: Vec<Blob>) -> Result<(), Error>;
}

/// An object that holds a body.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Blob {
    /// The blob's tenant.
    pub tenant: TenantId,
    /// The content's hash and size, and which object holds it.
    pub body: BodyRef,
}

/// The result of one step of condemning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condemned {
    /// Blobs that no task refers to or ever will: the caller deletes their objects.
    pub blobs: Vec<Blob>,
    /// Where the next step starts, `None` when the pass is complete.
    pub next: Option<Blob>,
}
