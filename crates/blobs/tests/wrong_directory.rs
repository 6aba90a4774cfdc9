//! A directory that is not the one that bodies are kept in: a volume that is not mounted, or another one.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use redrive_core::{BodyHash, Timestamp};
use redrive_engine::bodies::{Bodies, BodyError};
use redrive_store::{Blob, BlobStorageId, Store};
use support::{BlobBackend, LIMIT, PART, World, content, in_pieces, tenant, world};

/// Renames the directory away, and puts something in its place.
type Swap = fn(&Path);

const SWAPS: [Swap; 3] = [for_nothing, for_an_empty_one, for_another_place];

fn away(root: &Path) -> PathBuf {
    root.with_file_name("away")
}

fn for_nothing(root: &Path) {
    std::fs::rename(root, away(root)).unwrap();
}

/// As a volume leaves it that is not mounted.
fn for_an_empty_one(root: &Path) {
    for_nothing(root);
    std::fs::create_dir(root).unwrap();
}

fn for_another_place(root: &Path) {
    for_an_empty_one(root);
    std::fs::write(root.join("place"), format!("{}\n", BlobStorageId::of(7))).unwrap();
}

fn put_back(root: &Path) {
    if root.exists() {
        std::fs::remove_dir_all(root).unwrap();
    }
    std::fs::rename(away(root), root).unwrap();
}

/// A directory that has been marked.
async fn marked() -> World {
    let world = world(BlobBackend::Directory);
    world.blobs.mark().await.unwrap();
    world
}

fn is_unavailable<T: std::fmt::Debug>(answer: &Result<T, BodyError>) -> bool {
    matches!(answer, Err(BodyError::Unavailable(_)))
}

#[tokio::test]
async fn nothing_is_kept_in_a_directory_without_the_right_marker() {
    for swap in SWAPS {
        let world = marked().await;
        let root = world.root();
        world.blobs.check().await.unwrap();
        swap(&root);
        for bytes in [content(1_000), content(PART + 1)] {
            let refused = world.keep(&bytes).await;
            assert!(is_unavailable(&refused), "{refused:?}");
        }
        let refused = world.blobs.check().await.unwrap_err().to_string();
        assert!(refused.contains(root.to_str().unwrap()), "{refused}");
        assert_eq!((world.bodies(), world.unfinished()), (vec![], vec![]), "nothing was written there");
        put_back(&root);
        world.blobs.check().await.unwrap();
        let body = world.keep(&content(1_000)).await.unwrap();
        assert_eq!(world.read(&body).await.0, content(1_000));
    }
}

/// The bytes may be in either directory then.
#[tokio::test]
async fn a_body_is_not_kept_if_the_directory_is_swapped_while_it_comes_in() {
    for swap in SWAPS {
        for length in [1_000, PART + 1] {
            let world = marked().await;
            let (bytes, root) = (content(length), world.root());
            let swapping = stream::once(async move {
                swap(&root);
                Ok(Bytes::from_static(b"!"))
            });
            let pieces = Box::pin(in_pieces(&bytes).chain(swapping));
            let kept = world.blobs.keep(&tenant(), pieces, LIMIT).await;
            assert!(is_unavailable(&kept), "{length} bytes: {kept:?}");
            put_back(&world.root());
            let whole = [&bytes[..], b"!"].concat();
            assert_eq!(world.blobs.find(&tenant(), BodyHash::of(&whole)).await.unwrap(), None);
            let body = world.keep(&whole).await.unwrap();
            assert_eq!(world.read(&body).await.0, whole);
        }
    }
}

#[tokio::test]
async fn known_content_is_not_taken_for_kept_in_a_wrong_directory() {
    for swap in SWAPS {
        let world = marked().await;
        let body = world.keep(b"body").await.unwrap();
        swap(&world.root());
        for answer in [world.keep(b"body").await.map(Some), world.blobs.find(&tenant(), body.hash).await] {
            assert!(is_unavailable(&answer), "{answer:?}");
        }
        let read = world.read(&body).await.1;
        assert!(matches!(read, Some(BodyError::Unavailable(_))), "{read:?}");
        put_back(&world.root());
        assert_eq!(world.blobs.find(&tenant(), body.hash).await.unwrap(), Some(body));
        assert_eq!(world.keep(b"body").await.unwrap(), body);
    }
}

#[tokio::test]
async fn nothing_is_deleted_or_taken_for_deleted_in_a_wrong_directory() {
    for swap in SWAPS {
        let world = marked().await;
        let body = world.keep(b"body").await.unwrap();
        let (blob, root) = (Blob { tenant: tenant(), body }, world.root());
        swap(&root);
        let others = root.join("incoming/00000000000000aa");
        if root.exists() {
            std::fs::create_dir(root.join("incoming")).unwrap();
            std::fs::write(&others, b"of another service").unwrap();
        }
        let deleted = world.blobs.delete(&blob).await;
        assert!(is_unavailable(&deleted), "{deleted:?}");
        let deleted = world.blobs.delete_unfinished(Timestamp::MAX).await;
        assert!(is_unavailable(&deleted), "{deleted:?}");
        assert_eq!(others.exists(), root.exists());
        put_back(&root);
        assert_eq!(world.read(&body).await.0, b"body");
        world.store.blobs().condemn(Timestamp::MAX, None, 10).await.unwrap();
        world.blobs.delete(&blob).await.unwrap();
        assert!(matches!(world.read(&body).await.1, Some(BodyError::Missing)));
    }
}
