//! Stores, reads and deletes bodies.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use redrive_core::{BodyHash, BodyRef, TenantId, Timestamp};
use redrive_engine::bodies::{Bodies, BodyError, Pieces};
use redrive_engine::clock::Clock;
use redrive_engine::entropy::Entropy;
use redrive_store::{Blob, BlobStorageId, Store};

use crate::directory::Directory;
use crate::failure::{self, OpenError};
use crate::location::{Credentials, Location};
use crate::object_names::ObjectNames;
use crate::upload::{self, Content, Received};
use crate::{bucket, permissions, unfinished_uploads, verified};

/// Object storage for large bodies. The store records which bodies are in it.
pub struct Blobs {
    pub(crate) storage: Arc<dyn ObjectStore>,
    pub(crate) names: ObjectNames,
    /// Only if the storage is a directory.
    pub(crate) directory: Option<Directory>,
    /// The location as it is shown to people.
    pub(crate) location: String,
    /// The identity of the storage at the start.
    pub(crate) known: OnceLock<BlobStorageId>,
    /// Whether the credentials come from the metadata service of the machine.
    pub(crate) asks_for_keys: bool,
    pub(crate) parts: Parts,
}

/// The parts of the service that [`Blobs`] uses.
#[derive(Clone)]
pub struct Parts {
    /// Records which bodies are stored.
    pub store: Arc<dyn Store>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
}

impl Blobs {
    /// Opens the storage; a directory is created if it does not exist. Blocks for a moment. It does not connect:
    /// [`Blobs::identity`] finds out whether the storage can be used.
    pub fn open(location: &Location, credentials: &Credentials, parts: Parts) -> Result<Self, OpenError> {
        Blobs::open_trusting(location, credentials, &[], parts)
    }

    /// Like [`Blobs::open`]; the certificate of S3 may also be signed by an authority in these PEM files.
    pub fn open_trusting(
        location: &Location,
        credentials: &Credentials,
        extra_ca: &[PathBuf],
        parts: Parts,
    ) -> Result<Self, OpenError> {
        let (storage, prefix, directory): (Arc<dyn ObjectStore>, &str, _) = match location {
            Location::Memory => (Arc::new(InMemory::new()), "", None),
            Location::Directory(path) => {
                let directory = Directory::open(path)?;
                (directory.files.clone(), "", Some(directory))
            }
            Location::S3(bucket) => (Arc::new(bucket::open(bucket, credentials, extra_ca)?), &bucket.prefix, None),
        };
        let asks_for_keys = matches!(location, Location::S3(_)) && credentials.access_key_id.is_none();
        let (names, location, known) = (ObjectNames::below(prefix), location.to_string(), OnceLock::new());
        Ok(Blobs { storage, names, directory, location, known, asks_for_keys, parts })
    }

    /// Gives a received body its final name.
    async fn publish(&self, name: &Path, content: Content, number: u64) -> Result<(), BodyError> {
        let waiting = match content {
            // One whole object at once: there is no moment at which it is half there.
            Content::InMemory(bytes) if self.directory.is_none() => return self.put(name, bytes).await,
            // A file that a crash leaves half written must lie where it is found again.
            Content::InMemory(bytes) => {
                let waiting = self.names.incoming(number);
                self.put(&waiting, bytes).await?;
                waiting
            }
            Content::Uploaded(waiting) => waiting,
        };
        self.close_file(&waiting).await?;
        self.make_parent_directory(name).await?;
        self.storage.rename(&waiting, name).await.map_err(failure::of)
    }

    /// Creates the directory of the object, if the storage is a directory.
    async fn make_parent_directory(&self, object: &Path) -> Result<(), BodyError> {
        let Some(directory) = &self.directory else { return Ok(()) };
        directory.make_parent_directory(object).await.map_err(failure::of_file)
    }

    /// Makes the object's file readable for its owner only, if the storage is a directory.
    pub(crate) async fn close_file(&self, object: &Path) -> Result<(), BodyError> {
        let Some(directory) = &self.directory else { return Ok(()) };
        directory.with_file(object, permissions::close_file).await.map_err(failure::of_file)
    }

    async fn put(&self, name: &Path, bytes: Bytes) -> Result<(), BodyError> {
        self.storage.put(name, bytes.into()).await.map_err(failure::of)?;
        Ok(())
    }

    async fn discard(&self, content: Content) {
        if let Content::Uploaded(waiting) = content
            && let Err(error) = self.storage.delete(&waiting).await
        {
            // The collector finds it.
            tracing::debug!(%error, "could not delete an upload that was not needed; the collector deletes it later");
        }
    }
}

#[async_trait]
impl Bodies for Blobs {
    async fn keep(&self, tenant: &TenantId, pieces: Pieces, limit: u64) -> Result<BodyRef, BodyError> {
        let right = self.verify().await?;
        let number = self.parts.entropy.bits();
        let incoming = self.names.incoming(number);
        self.make_parent_directory(&incoming).await?;
        let Received { hash, length, content } = upload::receive(&*self.storage, &incoming, pieces, limit).await?;
        let fresh = BodyRef { hash, length, copy: number };
        // The store first: an object that has its final name is always known there.
        let body = self.parts.store.blobs().adopt(tenant.clone(), fresh, self.parts.clock.now()).await?;
        let object = self.names.body(tenant, &body);
        if body != fresh && self.size_in(&right, &object).await? == Some(body.length) {
            self.discard(content).await;
        } else {
            self.publish(&object, content, number).await?;
        }
        self.confirm(&right, &object, body.length).await?;
        Ok(body)
    }

    async fn find(&self, tenant: &TenantId, hash: BodyHash) -> Result<Option<BodyRef>, BodyError> {
        let Some(body) = self.parts.store.blobs().find(tenant.clone(), hash).await? else { return Ok(None) };
        let size = self.size(&self.names.body(tenant, &body)).await?;
        Ok((size == Some(body.length)).then_some(body))
    }

    async fn open(&self, tenant: &TenantId, body: &BodyRef) -> Result<Pieces, BodyError> {
        let object = self.names.body(tenant, body);
        match self.storage.get(&object).await {
            Ok(found) if found.meta.size == body.length => Ok(verified::pieces(found, *body)),
            Err(error) if !failure::is_missing(&error) => Err(failure::of(error)),
            Ok(_) | Err(_) => Err(self.lost(&object, body.length).await),
        }
    }

    async fn delete(&self, blob: &Blob) -> Result<(), BodyError> {
        let object = self.names.body(&blob.tenant, &blob.body);
        let right = self.verify().await?;
        if let Some(directory) = &right.directory {
            return directory.delete(&object).await.map_err(failure::of_file);
        }
        match self.storage.delete(&object).await {
            Err(error) if !failure::is_missing(&error) => Err(failure::of(error)),
            // What was deleted elsewhere is still here.
            Ok(()) | Err(_) => self.verify().await.map(drop).map_err(BodyError::from),
        }
    }

    async fn delete_unfinished(&self, before: Timestamp) -> Result<usize, BodyError> {
        match self.verify().await?.directory {
            Some(directory) => directory.delete_unfinished(before).await.map_err(failure::of_file),
            None => unfinished_uploads::delete_objects(&*self.storage, &self.names, before).await,
        }
    }

    async fn check(&self) -> Result<(), BodyError> {
        self.is_usable().await
    }
}

impl fmt::Debug for Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blobs").field("storage", &self.storage).finish_non_exhaustive()
    }
}
