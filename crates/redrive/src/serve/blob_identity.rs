//! Checks at the start that this node uses the same blob storage as the other nodes, and that it can be used.
//!
//! A node with another storage would not find bodies and fail their tasks. The address is not enough to compare: so the
//! storage has an identity, which is recorded in the shared store. An embedded store has a file for it (`recorded`), so
//! that a volume that is not mounted is noticed.

mod recorded;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use redrive_blobs::{Blobs, Location};
use redrive_store::{BlobStorageId, SharedStore, Store};

use crate::exit::{Exit, ExitError};
use recorded::RecordedStorage;

/// The blob storage of this node.
pub(super) struct BlobStorage {
    pub(super) blobs: Arc<Blobs>,
    pub(super) location: Location,
    /// Whether a setting names it, and not a default.
    pub(super) is_named: bool,
    /// The data directory of an embedded store, which has the record of the identity.
    pub(super) data_dir: Option<PathBuf>,
}

/// Checks that this is the blob storage of the store. The first node records it.
pub(super) async fn check(storage: Option<&BlobStorage>, store: &dyn Store) -> anyhow::Result<()> {
    let Some(shared) = store.shared() else {
        return match storage {
            Some(storage) => storage.check_own().await,
            None => Ok(()),
        };
    };
    let recorded = recorded(shared, None).await?;
    match (storage, recorded) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(refuse(
            "the tasks of this store have large bodies in blob storage, and this node has none: start it with the same \
             --blobs as the other nodes"
                .into(),
        )),
        // Read without writing a marker: the wrong storage must not get one.
        (Some(storage), Some(recorded)) => storage.must_be(recorded, storage.identity().await?),
        (Some(storage), None) => {
            let mine = storage.mark().await?;
            let recorded = self::recorded(shared, Some(mine)).await?.unwrap_or(mine);
            storage.must_be(recorded, Some(mine))
        }
    }
}

async fn recorded(shared: &dyn SharedStore, mine: Option<BlobStorageId>) -> anyhow::Result<Option<BlobStorageId>> {
    shared.blob_storage_id(mine).await.context("cannot read from the store where large bodies are stored")
}

impl BlobStorage {
    async fn identity(&self) -> anyhow::Result<Option<BlobStorageId>> {
        self.blobs.identity().await.with_context(|| self.unusable())
    }

    async fn mark(&self) -> anyhow::Result<BlobStorageId> {
        self.blobs.mark().await.with_context(|| self.unusable())
    }

    /// Checks the identity of the blob storage of an embedded store. A changed location is a decision of the operator,
    /// so only the same location must have the same identity.
    async fn check_own(&self) -> anyhow::Result<()> {
        let recorded = self.data_dir.as_deref().map(recorded::read).transpose()?.flatten();
        if let Some(recorded) = recorded.filter(|recorded| recorded.location == self.location.to_string()) {
            return self.must_still_be(recorded.identity, self.identity().await?);
        }
        match self.mark_and_record().await {
            // The default directory is used without being configured: a full disk, for example, does not prevent the
            // start.
            Err(error) if !self.is_named => {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "cannot write the marker of the blob storage: a replaced directory or bucket would not be noticed"
                );
                Ok(())
            }
            done => done,
        }
    }

    async fn mark_and_record(&self) -> anyhow::Result<()> {
        let identity = self.mark().await?;
        let Some(data_dir) = &self.data_dir else { return Ok(()) };
        recorded::write(data_dir, &RecordedStorage { location: self.location.to_string(), identity })
    }

    fn must_still_be(&self, recorded: BlobStorageId, found: Option<BlobStorageId>) -> anyhow::Result<()> {
        let Some(found) = difference(recorded, found) else { return Ok(()) };
        let (location, file) = (&self.location, self.data_dir.as_deref().map(recorded::file).unwrap_or_default());
        Err(refuse(format!(
            "the large bodies of this store's tasks are no longer in {location}: {found}, expected {recorded}. Mount the \
             volume that has them; if they are lost for good, delete {}",
            file.display()
        )))
    }

    fn unusable(&self) -> String {
        format!("cannot store large bodies in {}", self.location)
    }

    fn must_be(&self, recorded: BlobStorageId, found: Option<BlobStorageId>) -> anyhow::Result<()> {
        let Some(found) = difference(recorded, found) else { return Ok(()) };
        let location = &self.location;
        Err(refuse(format!(
            "the large bodies of this store's tasks are not in {location}: {found}, expected {recorded}. Every node needs the \
             same --blobs; if the bodies were moved, move their marker, the object \"place\", with them"
        )))
    }
}

/// How the identity that was found differs from the recorded one; nothing if it is the same.
fn difference(recorded: BlobStorageId, found: Option<BlobStorageId>) -> Option<String> {
    match found {
        Some(found) if found == recorded => None,
        Some(found) => Some(format!("its marker is {found}")),
        None => Some("it has no marker \"place\"".into()),
    }
}

fn refuse(message: String) -> anyhow::Error {
    ExitError::of(Exit::BadConfiguration, message)
}
