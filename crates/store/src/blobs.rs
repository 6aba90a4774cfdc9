//! Which objects in blob storage hold bodies that are needed.
//!
//! The bytes are elsewhere (`redrive-blobs`): here is only which object holds which content, and whether it may be deleted.

use async_trait::async_trait;
use redrive_core::{BodyHash, BodyRef, TenantId, Timestamp};

use crate::Error;

/// Keeps track of the objects that hold bodies.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Keeps an object for this content, and says which: the one that is kept already, or else `fresh`. It stays for as long
    /// as a task refers to it, and for a while after `now` even if none does. Called *before* the object is written under
    /// its name, so that every object in storage is, or once was, known here.
    async fn adopt(&self, tenant: TenantId, fresh: BodyRef, now: Timestamp) -> Result<BodyRef, Error>;

    /// The object that is kept for this content.
    async fn find(&self, tenant: TenantId, hash: BodyHash) -> Result<Option<BodyRef>, Error>;

    /// Condemns blobs that were last adopted before `adopted_before` and that no task refers to, looking at no more than
    /// `limit` of those after `after`. A condemned blob is not kept any more: no task can refer to it from that commit
    /// on, so its object may be deleted, however late. It is named again in every pass, until it is
    /// [forgotten](Blobs::forget).
    ///
    /// This and `submit` must exclude each other for the same blob: whichever commits first, the other sees it.
    async fn condemn(&self, adopted_before: Timestamp, after: Option<Blob>, limit: usize) -> Result<Condemned, Error>;

    /// Forgets condemned blobs whose objects have been deleted. A blob that is not condemned stays.
    async fn forget(&self, blobs: Vec<Blob>) -> Result<(), Error>;
}

/// An object that holds a body.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Blob {
    /// Its tenant.
    pub tenant: TenantId,
    /// What it holds, and which object it is.
    pub body: BodyRef,
}

/// What one step of condemning found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condemned {
    /// Blobs that no task refers to and none ever will: their objects are to be deleted.
    pub blobs: Vec<Blob>,
    /// Where to go on, `None` when the pass is complete.
    pub next: Option<Blob>,
}
