//! One blob storage, and access to what it has stored.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

pub mod s3;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use redrive_blobs::{Blobs, Credentials, Location, Parts};
use redrive_core::{BodyRef, TenantId};
use redrive_engine::bodies::{Bodies, BodyError, Pieces};
use redrive_engine::clock::SystemClock;
use redrive_engine::entropy::Entropy;
use redrive_store::MemoryStore;
use s3::{S3, files_below};

/// What an upload gathers before it sends it on.
pub const PART: usize = 5 * 1024 * 1024;
pub const LIMIT: u64 = 64 * 1024 * 1024;

/// One blob storage, and access to what it has stored.
pub struct World {
    pub blobs: Blobs,
    pub store: Arc<MemoryStore>,
    pub clock: SystemClock,
    pub url: String,
    pub directory: Option<tempfile::TempDir>,
    pub s3: Option<S3>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobBackend {
    Directory,
    S3,
    Memory,
}

pub const ALL_BACKENDS: [BlobBackend; 3] = [BlobBackend::Directory, BlobBackend::S3, BlobBackend::Memory];
/// The backends that keep files, which a test can read.
pub const FILE_BACKENDS: [BlobBackend; 2] = [BlobBackend::Directory, BlobBackend::S3];

struct Counting(std::sync::atomic::AtomicU64);

impl Entropy for Counting {
    fn bits(&self) -> u64 {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
}

pub fn world(backend: BlobBackend) -> World {
    let (store, clock) = (Arc::new(MemoryStore::new()), SystemClock::start());
    let directory = (backend == BlobBackend::Directory).then(|| tempfile::tempdir().unwrap());
    let s3 = (backend == BlobBackend::S3).then(S3::start);
    let url = match (&directory, &s3) {
        (Some(directory), _) => format!("file://{}/not/there/yet", directory.path().display()),
        (_, Some(s3)) => s3.url(),
        _ => "memory:".into(),
    };
    let blobs = open(&url, &keys(), store.clone(), 1);
    World { blobs, store, clock, url, directory, s3 }
}

pub fn keys() -> Credentials {
    Credentials {
        access_key_id: Some(s3::ACCESS_KEY_ID.into()),
        secret_access_key: Some(s3::SECRET_ACCESS_KEY.into()),
        session_token: None,
    }
}

pub fn open(url: &str, keys: &Credentials, store: Arc<MemoryStore>, first_random: u64) -> Blobs {
    let entropy = Arc::new(Counting(first_random.into()));
    let parts = Parts { store, clock: Arc::new(SystemClock::start()), entropy };
    Blobs::open(&Location::parse(url).unwrap(), keys, parts).unwrap()
}

impl World {
    pub async fn keep(&self, bytes: &[u8]) -> Result<BodyRef, BodyError> {
        self.blobs.keep(&tenant(), in_pieces(bytes), LIMIT).await
    }

    pub async fn read(&self, body: &BodyRef) -> (Vec<u8>, Option<BodyError>) {
        match self.blobs.open(&tenant(), body).await {
            Ok(pieces) => collect(pieces).await,
            Err(error) => (Vec::new(), Some(error)),
        }
    }

    /// Another process over the same storage, which draws other numbers.
    pub fn neighbour(&self) -> Blobs {
        open(&self.url, &keys(), self.store.clone(), 1_000)
    }

    pub fn root(&self) -> PathBuf {
        match (&self.directory, &self.s3) {
            (Some(directory), _) => directory.path().join("not/there/yet"),
            (_, Some(s3)) => s3.root(),
            _ => panic!("there are no files"),
        }
    }

    /// The files of bodies under their final names.
    pub fn bodies(&self) -> Vec<PathBuf> {
        files_below(self.root().join("bodies"))
    }

    /// The files of bodies that are not.
    pub fn unfinished(&self) -> Vec<PathBuf> {
        files_below(self.root().join("incoming"))
    }
}

pub fn tenant() -> TenantId {
    TenantId::default_tenant()
}

/// Bytes that are nowhere the same for long.
pub fn content(length: usize) -> Vec<u8> {
    (0..length as u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

pub fn in_pieces(bytes: &[u8]) -> Pieces {
    let pieces: Vec<_> = bytes.chunks(70_001).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    Box::pin(stream::iter(pieces))
}

/// What came, and what ended it if it was no end.
pub async fn collect(mut pieces: Pieces) -> (Vec<u8>, Option<BodyError>) {
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(piece) => bytes.extend_from_slice(&piece),
            Err(error) => return (bytes, Some(error)),
        }
    }
    (bytes, None)
}
