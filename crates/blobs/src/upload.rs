//! Receives a body piece by piece, hashes it, and uploads it as it comes.

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _};
use redrive_core::BodyHash;
use redrive_core::body::BodyHasher;
use redrive_engine::bodies::{BodyError, Pieces};

use crate::failure;

/// The size of a part: the smallest that S3 accepts, and the most memory that an upload needs.
pub(crate) const PART: usize = 5 * 1024 * 1024;

/// A body that was received and does not have its final name yet.
pub(crate) struct Received {
    pub(crate) hash: BodyHash,
    pub(crate) length: u64,
    pub(crate) content: Content,
}

/// Where the bytes of a received body are.
pub(crate) enum Content {
    /// In memory: it fits into one part.
    InMemory(Bytes),
    /// In an object below `incoming`, which is still to be renamed.
    Uploaded(Path),
}

/// Receives a body of at most `limit` bytes. What does not fit into one part is uploaded to `path` as it comes.
pub(crate) async fn receive(
    storage: &dyn ObjectStore,
    path: &Path,
    mut pieces: Pieces,
    limit: u64,
) -> Result<Received, BodyError> {
    let mut hasher = BodyHasher::default();
    let mut gathered = BytesMut::new();
    let mut upload = None;
    while let Some(piece) = pieces.next().await {
        let mut piece = piece?;
        hasher.add(&piece);
        if hasher.length() > limit {
            return Err(BodyError::TooLarge { limit });
        }
        while gathered.len() + piece.len() > PART {
            let room = piece.split_to(PART - gathered.len());
            gathered.extend_from_slice(&room);
            let part = std::mem::take(&mut gathered).freeze();
            Upload::part(&mut upload, storage, path, part).await?;
        }
        if gathered.capacity() == 0 && upload.is_some() {
            gathered.reserve(PART);
        }
        gathered.extend_from_slice(&piece);
    }
    let length = hasher.length();
    let content = match upload {
        None => Content::InMemory(gathered.freeze()),
        Some(upload) => {
            upload.finish(gathered.freeze()).await?;
            Content::Uploaded(path.clone())
        }
    };
    Ok(Received { hash: hasher.finish(), length, content })
}

/// A multipart upload. Dropping it before it is finished aborts it.
struct Upload(Option<Box<dyn MultipartUpload>>);

impl Upload {
    /// Writes the next part; the first one begins the upload.
    async fn part(
        upload: &mut Option<Upload>,
        storage: &dyn ObjectStore,
        path: &Path,
        part: Bytes,
    ) -> Result<(), BodyError> {
        let Upload(begun) = match upload {
            Some(upload) => upload,
            None => upload.insert(Upload(Some(storage.put_multipart(path).await.map_err(failure::of)?))),
        };
        let Some(begun) = begun else { return Ok(()) };
        begun.put_part(part.into()).await.map_err(failure::of)
    }

    async fn finish(mut self, last: Bytes) -> Result<(), BodyError> {
        if let Some(upload) = &mut self.0 {
            if !last.is_empty() {
                upload.put_part(last.into()).await.map_err(failure::of)?;
            }
            upload.complete().await.map_err(failure::of)?;
        }
        self.0 = None;
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let Some(mut upload) = self.0.take() else { return };
        // Without a runtime the process is ending, and the collector finds what is left.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = upload.abort().await {
                    tracing::debug!(%error, "could not abort an unfinished upload; the collector deletes it later");
                }
            });
        }
    }
}
