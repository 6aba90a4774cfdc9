//! Which blob storage this is, and whether it is still the same.
//!
//! Nothing is written, deleted or called missing before the storage has been verified by its marker. It may be swapped
//! right after that. So a directory stays held open and is what is looked at in the end; a bucket's marker is read once
//! more.

use std::time::Duration;

use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use redrive_engine::bodies::BodyError;
use redrive_store::BlobStorageId;

use crate::blobs::Blobs;
use crate::directory::{Directory, HeldDirectory};
use crate::failure::{self, StorageError};
use crate::marker;

/// How long it may take at the start to find out which storage this is.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a directory may take to answer a health check, which has a few seconds for everything.
const DIRECTORY_TIMEOUT: Duration = Duration::from_secs(2);
/// The same for a bucket. A probe that waits for a second must get its answer, because a slow bucket is not counted.
const BUCKET_TIMEOUT: Duration = Duration::from_millis(500);

/// Storage whose identity was verified.
pub(crate) struct VerifiedStorage {
    /// Held open, if it is a directory.
    pub(crate) directory: Option<HeldDirectory>,
}

impl Blobs {
    /// The identity of the storage; nothing if it has never been used.
    pub async fn identity(&self) -> Result<Option<BlobStorageId>, StorageError> {
        let found = self.in_time(marker::read(&*self.storage, &self.names.marker())).await?;
        if let Some(found) = found {
            self.known.get_or_init(|| found);
        }
        Ok(found)
    }

    /// The identity of the storage; one that has never been used gets one.
    pub async fn mark(&self) -> Result<BlobStorageId, StorageError> {
        if let Some(found) = self.identity().await? {
            return Ok(found);
        }
        let bits = || u128::from(self.parts.entropy.bits());
        let fresh = BlobStorageId::of(bits() << 64 | bits());
        let written = self.in_time(marker::write(&*self.storage, &self.names.marker(), fresh)).await?;
        let unavailable = |error: BodyError| StorageError::Unavailable(error.to_string());
        self.close_file(&self.names.marker()).await.map_err(unavailable)?;
        self.known.get_or_init(|| written);
        Ok(written)
    }

    /// What a look at the marker comes to, as long as a start waits for it.
    async fn in_time<T>(&self, looking: impl Future<Output = Result<T, StorageError>>) -> Result<T, StorageError> {
        match tokio::time::timeout(START_TIMEOUT, looking).await {
            Ok(Err(error)) if self.asks_for_keys => Err(error.without_keys()),
            Ok(found) => found,
            Err(_) => Err(StorageError::Unavailable(format!("no answer within {START_TIMEOUT:?}"))),
        }
    }

    /// Checks that this is the same storage as at the start. Storage without an identity is accepted.
    pub(crate) async fn verify(&self) -> Result<VerifiedStorage, StorageError> {
        let directory = match &self.directory {
            Some(directory) => self.hold(directory).await?,
            None => None,
        };
        let Some(&expected) = self.known.get() else { return Ok(VerifiedStorage { directory }) };
        let found = match (&directory, &self.directory) {
            (Some(held), _) => held.identity().await?,
            (None, Some(_)) => None,
            (None, None) => marker::read(&*self.storage, &self.names.marker()).await?,
        };
        if found == Some(expected) {
            return Ok(VerifiedStorage { directory });
        }
        Err(StorageError::WrongStorage { location: self.location.clone(), found, expected })
    }

    /// Holds the directory that is there now. There must be one, unless its marker, which is missing then, says enough.
    async fn hold(&self, directory: &Directory) -> Result<Option<HeldDirectory>, StorageError> {
        let location = &self.location;
        match directory.hold().await {
            Ok(None) if self.known.get().is_none() => {
                Err(StorageError::Unavailable(format!("there is no directory {location}")))
            }
            Ok(held) => Ok(held),
            Err(error) => Err(StorageError::Unavailable(format!("cannot open {location}: {error}"))),
        }
    }

    /// Checks that an object was written to the verified storage, before it is acknowledged.
    pub(crate) async fn confirm(&self, right: &VerifiedStorage, object: &Path, length: u64) -> Result<(), BodyError> {
        if right.directory.is_none() {
            return self.verify().await.map(drop).map_err(BodyError::from);
        }
        match self.size_in(right, object).await? {
            Some(size) if size == length => Ok(()),
            _ => Err(BodyError::Unavailable(format!("{} was replaced while a body was written to it", self.location))),
        }
    }

    /// How many bytes the object has in the storage that was verified, if it is there.
    pub(crate) async fn size_in(&self, right: &VerifiedStorage, object: &Path) -> Result<Option<u64>, BodyError> {
        if let Some(directory) = &right.directory {
            return directory.size(object).await.map_err(failure::of_file);
        }
        self.head(object).await
    }

    async fn head(&self, object: &Path) -> Result<Option<u64>, BodyError> {
        match self.storage.head(object).await {
            Ok(found) => Ok(Some(found.size)),
            // An answer to HEAD has no code that tells a missing object from a missing bucket; the marker does.
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failure::of(error)),
        }
    }

    /// How many bytes the object has, if it is there. That it is not there is said of the right storage only.
    pub(crate) async fn size(&self, object: &Path) -> Result<Option<u64>, BodyError> {
        if self.directory.is_none()
            && let Some(size) = self.head(object).await?
        {
            return Ok(Some(size));
        }
        let right = self.verify().await?;
        let size = self.size_in(&right, object).await?;
        if right.directory.is_none() {
            self.verify().await?;
        }
        Ok(size)
    }

    /// What it means that an object seems to be missing or to have another length: it is lost only if that is found
    /// again in the right storage.
    pub(crate) async fn lost(&self, object: &Path, length: u64) -> BodyError {
        match self.size(object).await {
            Ok(None) => BodyError::Missing,
            Ok(Some(size)) if size == length => {
                BodyError::Unavailable("the stored body could not be read, but it is there".into())
            }
            Ok(Some(size)) => BodyError::Damaged(format!("it has {size} bytes, not {length}")),
            Err(error) => error,
        }
    }

    /// Whether a body can be taken here, for a health check. S3 that does not answer is not counted: it is the same for
    /// all nodes, and small bodies do not need it.
    pub(crate) async fn is_usable(&self) -> Result<(), BodyError> {
        let within = if self.directory.is_some() { DIRECTORY_TIMEOUT } else { BUCKET_TIMEOUT };
        let late = || StorageError::Unavailable(format!("no answer from {} within {within:?}", self.location));
        match tokio::time::timeout(within, self.verify()).await.unwrap_or_else(|_| Err(late())) {
            Ok(_) => Ok(()),
            Err(StorageError::Unavailable(_)) if self.directory.is_none() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
