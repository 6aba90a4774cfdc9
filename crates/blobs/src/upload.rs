//! Taking a body in, piece by piece, hashed on the way.

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _};
use redrive_core::BodyHash;
use redrive_core::body::BodyHasher;
use redrive_engine::bodies::{BodyError, Pieces};

use crate::failure;

/// How much is gathered before it is sent on: the least that S3 takes as a part, and all that an upload holds in memory.
pub(crate) const PART: usize = 5 * 1024 * 1024;

/// A body that has come in, and is not in its place yet.
pub(crate) struct Received {
    pub(crate) hash: BodyHash,
    pub(crate) length: u64,
    pub(crate) content: Content,
}

/// Where a body is that has come in.
pub(crate) enum Content {
    /// It is small enough to be here.
    Here(Bytes),
    /// In an object that waits to be put in its place.
    Waiting(Path),
}

/// Takes in what comes, at most `limit` bytes; what does not fit into one part goes to `path` as it comes.
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
        None => Content::Here(gathered.freeze()),
        Some(upload) => {
            upload.finish(gathered.freeze()).await?;
            Content::Waiting(path.clone())
        }
    };
    Ok(Received { hash: hasher.finish(), length, content })
}

/// An object that is being written. One that is dropped half-way is taken back.
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
                    tracing::debug!(%error, "an upload that broke off could not be taken back");
                }
            });
        }
    }
}
