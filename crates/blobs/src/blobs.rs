//! What the server, the transport and the engine hold.

use std::fmt;
use std::path::{Path as Directory, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, RetryConfig};
use redrive_core::{BodyHash, BodyRef, TenantId, Timestamp};
use redrive_engine::bodies::{Bodies, BodyError, Pieces};
use redrive_engine::clock::Clock;
use redrive_engine::entropy::Entropy;
use redrive_store::{Blob, PlaceId, Store};
use redrive_trust::Authorities;

use crate::connector::Connector;
use crate::failure::{self, OpenError, PlaceError};
use crate::location::{Bucket, Credentials, Location};
use crate::place::{BODIES, INCOMING, Places};
use crate::upload::{self, Content, Received};
use crate::{marker, private, unfinished, verified};

/// How often a call to S3 is tried again, and for how long: the engine retries what needs longer.
const RETRIES: usize = 3;
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);
/// How long it may take to find out which place this is.
const MARKER_TIMEOUT: Duration = Duration::from_secs(30);

/// Object storage, and the store that knows what is in it.
pub struct Blobs {
    storage: Arc<dyn ObjectStore>,
    places: Places,
    /// The directory, if that is what it is.
    directory: Option<OpenDirectory>,
    /// Which place this was when somebody looked.
    known: OnceLock<PlaceId>,
    /// Whether the keys are those that the machine was given.
    asks_for_keys: bool,
    parts: Parts,
}

/// A directory that objects are kept in.
struct OpenDirectory {
    path: PathBuf,
    files: Arc<LocalFileSystem>,
}

/// What is injected.
#[derive(Clone)]
pub struct Parts {
    /// Knows which bodies are kept.
    pub store: Arc<dyn Store>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
}

impl Blobs {
    /// Opens a place; a directory is made if it is not there. Blocks for a moment. Whether what is there can be used is
    /// known when its identity has been asked for.
    pub fn open(location: &Location, credentials: &Credentials, parts: Parts) -> Result<Self, OpenError> {
        Blobs::open_trusting(location, credentials, &[], parts)
    }

    /// The same, where S3 may also show a certificate of the authorities in these PEM files.
    pub fn open_trusting(
        location: &Location,
        credentials: &Credentials,
        extra_ca: &[PathBuf],
        parts: Parts,
    ) -> Result<Self, OpenError> {
        let (storage, prefix, directory): (Arc<dyn ObjectStore>, &str, _) = match location {
            Location::Memory => (Arc::new(InMemory::new()), "", None),
            Location::Directory(path) => {
                let directory = open_directory(path)?;
                (directory.files.clone(), "", Some(directory))
            }
            Location::S3(bucket) => (Arc::new(open_bucket(bucket, credentials, extra_ca)?), &bucket.prefix, None),
        };
        let asks_for_keys = matches!(location, Location::S3(_)) && credentials.access_key_id.is_none();
        let (places, known) = (Places::below(prefix), OnceLock::new());
        Ok(Blobs { storage, places, directory, known, asks_for_keys, parts })
    }

    /// Which place this is, by its own word; nothing if it has never been used.
    pub async fn identity(&self) -> Result<Option<PlaceId>, PlaceError> {
        let found = self.in_time(marker::read(&*self.storage, &self.places.marker())).await?;
        if let Some(found) = found {
            self.known.get_or_init(|| found);
        }
        Ok(found)
    }

    /// Which place this is; one that has never been used is marked.
    pub async fn mark(&self) -> Result<PlaceId, PlaceError> {
        if let Some(found) = self.identity().await? {
            return Ok(found);
        }
        let bits = || u128::from(self.parts.entropy.bits());
        let fresh = PlaceId::of(bits() << 64 | bits());
        let written = self.in_time(marker::write(&*self.storage, &self.places.marker(), fresh)).await?;
        let unavailable = |error: BodyError| PlaceError::Unavailable(error.to_string());
        self.on_disk(&self.places.marker(), private::close_file).await.map_err(unavailable)?;
        self.known.get_or_init(|| written);
        Ok(written)
    }

    /// What a look at the marker comes to, as long as somebody waits for a start.
    async fn in_time<T>(&self, looking: impl Future<Output = Result<T, PlaceError>>) -> Result<T, PlaceError> {
        match tokio::time::timeout(MARKER_TIMEOUT, looking).await {
            Ok(Err(error)) if self.asks_for_keys => Err(error.without_keys()),
            Ok(found) => found,
            Err(_) => Err(PlaceError::Unavailable(format!("no answer within {MARKER_TIMEOUT:?}"))),
        }
    }

    /// What it means that an object is not there. If the marker is not there either, this is not the place that it was: a
    /// volume is not mounted, or the bucket has gone. Nothing is known of the body then.
    async fn missing(&self) -> BodyError {
        let Some(known) = self.known.get() else { return BodyError::Missing };
        match marker::read(&*self.storage, &self.places.marker()).await {
            Ok(Some(found)) if found == *known => BodyError::Missing,
            Ok(_) => {
                let marker = self.places.marker();
                BodyError::Unavailable(format!(
                    "this is not the place that it was at the start, by its marker {marker}"
                ))
            }
            Err(error) => BodyError::Unavailable(error.to_string()),
        }
    }

    /// Puts a body that has come in where its name says.
    async fn put_in_place(&self, place: &Path, content: Content, number: u64) -> Result<(), BodyError> {
        let waiting = match content {
            // One whole object at once: there is no moment at which it is half there.
            Content::Here(bytes) if self.directory.is_none() => return self.put(place, bytes).await,
            // A file that a crash leaves half written must lie where it is found again.
            Content::Here(bytes) => {
                let waiting = self.places.incoming(number);
                self.put(&waiting, bytes).await?;
                waiting
            }
            Content::Waiting(waiting) => waiting,
        };
        self.on_disk(&waiting, private::close_file).await?;
        self.make_room(place).await?;
        self.storage.rename(&waiting, place).await.map_err(failure::of)
    }

    /// Makes the directory that the object is to be in, where there are directories.
    async fn make_room(&self, object: &Path) -> Result<(), BodyError> {
        self.on_disk(object, |file| file.parent().map_or(Ok(()), private::make_directory)).await
    }

    /// Does something with the file of an object, where there are files.
    async fn on_disk(&self, object: &Path, act: fn(&Directory) -> std::io::Result<()>) -> Result<(), BodyError> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let file = directory.files.path_to_filesystem(object).map_err(failure::of)?;
        let done = tokio::task::spawn_blocking(move || act(&file)).await;
        let unavailable = |error: &dyn fmt::Display| BodyError::Unavailable(error.to_string());
        done.map_err(|error| unavailable(&error))?.map_err(|error| unavailable(&error))
    }

    async fn put(&self, place: &Path, bytes: Bytes) -> Result<(), BodyError> {
        self.storage.put(place, bytes.into()).await.map_err(failure::of)?;
        Ok(())
    }

    /// Whether the object of this body is in its place, as far as its length says.
    async fn is_in_place(&self, place: &Path, body: &BodyRef) -> Result<bool, BodyError> {
        match self.storage.head(place).await.map_err(failure::of) {
            Ok(object) => Ok(object.size == body.length),
            Err(BodyError::Missing) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn discard(&self, content: Content) {
        if let Content::Waiting(waiting) = content
            && let Err(error) = self.storage.delete(&waiting).await
        {
            // The collector finds it.
            tracing::debug!(%error, "an upload that was not needed could not be deleted");
        }
    }
}

#[async_trait]
impl Bodies for Blobs {
    async fn keep(&self, tenant: &TenantId, pieces: Pieces, limit: u64) -> Result<BodyRef, BodyError> {
        let number = self.parts.entropy.bits();
        let incoming = self.places.incoming(number);
        self.make_room(&incoming).await?;
        let Received { hash, length, content } = upload::receive(&*self.storage, &incoming, pieces, limit).await?;
        let fresh = BodyRef { hash, length, copy: number };
        // The store first: an object that is in its place has always been known there.
        let body = self.parts.store.adopt_blob(tenant.clone(), fresh, self.parts.clock.now()).await?;
        let place = self.places.body(tenant, &body);
        if body != fresh && self.is_in_place(&place, &body).await? {
            self.discard(content).await;
            return Ok(body);
        }
        self.put_in_place(&place, content, number).await?;
        Ok(body)
    }

    async fn find(&self, tenant: &TenantId, hash: BodyHash) -> Result<Option<BodyRef>, BodyError> {
        let Some(body) = self.parts.store.blob(tenant.clone(), hash).await? else { return Ok(None) };
        let is_there = self.is_in_place(&self.places.body(tenant, &body), &body).await?;
        Ok(is_there.then_some(body))
    }

    async fn open(&self, tenant: &TenantId, body: &BodyRef) -> Result<Pieces, BodyError> {
        let object = match self.storage.get(&self.places.body(tenant, body)).await.map_err(failure::of) {
            Err(BodyError::Missing) => return Err(self.missing().await),
            opened => opened?,
        };
        if object.meta.size != body.length {
            let (found, expected) = (object.meta.size, body.length);
            return Err(BodyError::Damaged(format!("it has {found} bytes, not {expected}")));
        }
        Ok(verified::pieces(object, *body))
    }

    async fn delete(&self, blob: &Blob) -> Result<(), BodyError> {
        match self.storage.delete(&self.places.body(&blob.tenant, &blob.body)).await.map_err(failure::of) {
            Ok(()) | Err(BodyError::Missing) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn delete_unfinished(&self, before: Timestamp) -> Result<usize, BodyError> {
        let Some(directory) = self.directory.as_ref().map(|directory| directory.path.clone()) else {
            return unfinished::delete_objects(&*self.storage, &self.places, before).await;
        };
        let deleted = tokio::task::spawn_blocking(move || unfinished::delete_files(&directory, before)).await;
        let unavailable = |error: &dyn fmt::Display| BodyError::Unavailable(error.to_string());
        deleted.map_err(|error| unavailable(&error))?.map_err(|error| unavailable(&error))
    }
}

impl fmt::Debug for Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blobs").field("storage", &self.storage).finish_non_exhaustive()
    }
}

/// A directory whose files are on the disk, under their names, when a call answers. What an older program left open to
/// others in it is closed.
fn open_directory(path: &Directory) -> Result<OpenDirectory, OpenError> {
    let failed = |source| OpenError::Directory { path: path.to_owned(), source };
    private::make_directory(path).map_err(failed)?;
    for ours in [BODIES, INCOMING].map(|name| path.join(name)) {
        if let Err(error) = private::close_directory(&ours) {
            tracing::warn!(%error, directory = %ours.display(), "others may read stored bodies: the directory is not ours to close");
        }
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        // The directory's own name is to survive, too.
        std::fs::File::open(above).and_then(|above| above.sync_all()).map_err(failed)?;
    }
    let files = Arc::new(LocalFileSystem::new_with_prefix(path)?.with_fsync(true));
    Ok(OpenDirectory { path: path.to_owned(), files })
}

pub(crate) fn open_bucket(
    bucket: &Bucket,
    credentials: &Credentials,
    extra_ca: &[PathBuf],
) -> Result<impl ObjectStore + use<>, OpenError> {
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&bucket.name)
        .with_region(&bucket.region)
        .with_http_connector(Connector { trusted: Authorities::of_the_system().and(extra_ca)? })
        .with_retry(retry);
    if let Some(endpoint) = &bucket.endpoint {
        builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http:"));
    }
    if let Some(id) = &credentials.access_key_id {
        builder = builder.with_access_key_id(id);
    }
    if let Some(secret) = &credentials.secret_access_key {
        builder = builder.with_secret_access_key(secret);
    }
    if let Some(token) = &credentials.session_token {
        builder = builder.with_token(token);
    }
    Ok(builder.build()?)
}
