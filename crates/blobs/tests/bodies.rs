//! Bodies in real storage: a directory, an S3-compatible server, memory.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use redrive_blobs::Credentials;
use redrive_core::{BodyHash, BodyRef, TenantId, Timestamp};
use redrive_engine::bodies::{Bodies, BodyError};
use redrive_engine::clock::Clock;
use redrive_store::{Blob, BlobStorageId, MemoryStore, Store};
use support::s3::S3;
use support::{
    ALL_BACKENDS, BlobBackend, FILE_BACKENDS, LIMIT, PART, collect, content, in_pieces, keys, open, tenant, world,
};

#[tokio::test]
async fn what_is_kept_is_given_back_byte_for_byte() {
    for backend in ALL_BACKENDS {
        let world = world(backend);
        for length in [0, 1, 70_001, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 7] {
            let bytes = content(length);
            let body = world.keep(&bytes).await.unwrap();
            assert_eq!((body.hash, body.length), (BodyHash::of(&bytes), length as u64), "{backend:?}");
            assert_eq!(world.blobs.find(&tenant(), body.hash).await.unwrap(), Some(body), "{backend:?}");
            let (read, error) = world.read(&body).await;
            assert!(error.is_none() && read == bytes, "{backend:?}, {length} bytes: {error:?}");
        }
        if FILE_BACKENDS.contains(&backend) {
            assert_eq!((world.bodies().len(), world.unfinished()), (8, vec![]), "{backend:?}");
        }
    }
}

#[tokio::test]
async fn the_same_content_is_one_object_and_another_tenants_is_another() {
    for backend in FILE_BACKENDS {
        let world = world(backend);
        for bytes in [content(1_000), content(PART + 1)] {
            let first = world.keep(&bytes).await.unwrap();
            assert_eq!(world.keep(&bytes).await.unwrap(), first);
        }
        assert_eq!((world.bodies().len(), world.unfinished()), (2, vec![]), "{backend:?}");
        let other = TenantId::try_new("other").unwrap();
        let body = world.blobs.keep(&other, in_pieces(&content(1_000)), LIMIT).await.unwrap();
        assert_eq!(world.bodies().len(), 3, "{backend:?}");
        assert!(world.blobs.open(&tenant(), &body).await.is_err_and(|error| matches!(error, BodyError::Missing)));
    }
}

#[tokio::test]
async fn an_object_that_has_gone_is_put_there_again_by_the_next_upload() {
    for backend in FILE_BACKENDS {
        let world = world(backend);
        let body = world.keep(b"body").await.unwrap();
        std::fs::remove_file(&world.bodies()[0]).unwrap();
        assert_eq!(world.blobs.find(&tenant(), body.hash).await.unwrap(), None);
        assert!(matches!(world.read(&body).await.1, Some(BodyError::Missing)), "{backend:?}");
        assert_eq!(world.keep(b"body").await.unwrap(), body);
        assert_eq!(world.read(&body).await.0, b"body");
    }
}

#[tokio::test]
async fn what_is_too_large_or_breaks_off_leaves_nothing_in_its_place() {
    for backend in ALL_BACKENDS {
        let world = world(backend);
        let bytes = content(2 * PART);
        for limit in [0, PART as u64, 2 * PART as u64 - 1] {
            let refused = world.blobs.keep(&tenant(), in_pieces(&bytes), limit).await;
            assert!(matches!(refused, Err(BodyError::TooLarge { limit: said }) if said == limit), "{refused:?}");
        }
        for length in [1_000, 2 * PART] {
            let broken = stream::iter([Err(BodyError::BrokenOff("hung up".into()))]);
            let pieces = Box::pin(in_pieces(&bytes[..length]).chain(broken));
            let refused = world.blobs.keep(&tenant(), pieces, LIMIT).await;
            assert!(matches!(refused, Err(BodyError::BrokenOff(_))), "{refused:?}");
        }
        assert_eq!(world.blobs.find(&tenant(), BodyHash::of(&bytes)).await.unwrap(), None);
        if FILE_BACKENDS.contains(&backend) {
            assert_eq!(world.bodies(), Vec::<PathBuf>::new(), "{backend:?}");
        }
    }
}

#[tokio::test]
async fn the_last_piece_of_a_damaged_body_never_comes() {
    for backend in FILE_BACKENDS {
        let world = world(backend);
        for length in [10, 200_000, PART + 1] {
            let mut bytes = content(length);
            let body = world.keep(&bytes).await.unwrap();
            let files = world.bodies();
            let file = files.iter().find(|file| file.to_str().unwrap().contains(&body.hash.hex())).unwrap();
            bytes[length / 2] ^= 1;
            std::fs::write(file, &bytes).unwrap();
            let (read, error) = world.read(&body).await;
            assert!(matches!(error, Some(BodyError::Damaged(_))), "{backend:?}: {error:?}");
            assert!((read.len() as u64) < body.length, "{backend:?}: all of it came");
            for wrong in [&bytes[1..], &[&bytes[..], b"x"].concat()] {
                std::fs::write(file, wrong).unwrap();
                let (read, error) = world.read(&body).await;
                assert!(matches!(error, Some(BodyError::Damaged(_))) && read.is_empty(), "{backend:?}: {error:?}");
            }
        }
    }
}

#[tokio::test]
async fn deleting_takes_this_copy_and_no_other() {
    for backend in ALL_BACKENDS {
        let world = world(backend);
        let first = world.keep(b"body").await.unwrap();
        let blob = Blob { tenant: tenant(), body: first };
        let condemned = world.store.blobs().condemn(Timestamp::MAX, None, 10).await.unwrap();
        assert_eq!(condemned.blobs, std::slice::from_ref(&blob));
        // The same content comes in again before anybody has deleted anything.
        let second = world.keep(b"body").await.unwrap();
        assert_ne!(second, first);
        for _ in 0..2 {
            world.blobs.delete(&blob).await.unwrap();
        }
        assert!(matches!(world.read(&first).await.1, Some(BodyError::Missing)), "{backend:?}");
        assert_eq!(world.read(&second).await.0, b"body", "{backend:?}");
    }
}

#[tokio::test]
async fn what_broken_uploads_left_is_deleted_once_it_is_old() {
    for backend in FILE_BACKENDS {
        let world = world(backend);
        let body = world.keep(b"body").await.unwrap();
        let incoming = world.root().join("incoming");
        std::fs::create_dir_all(&incoming).unwrap();
        std::fs::write(incoming.join("00000000000000aa"), b"waits").unwrap();
        let mut left = 1;
        if backend == BlobBackend::Directory {
            // What a process leaves that dies while it writes.
            std::fs::write(incoming.join("00000000000000bb#1"), b"half").unwrap();
            left += 1;
        }
        let now = world.clock.now();
        let hour = Duration::from_secs(3_600);
        assert_eq!(world.blobs.delete_unfinished(now.before(hour)).await.unwrap(), 0, "{backend:?}");
        assert_eq!(world.unfinished().len(), left, "{backend:?}");
        assert_eq!(world.blobs.delete_unfinished(now.after(hour)).await.unwrap(), left, "{backend:?}");
        assert_eq!(world.unfinished(), Vec::<PathBuf>::new(), "{backend:?}");
        assert_eq!(world.read(&body).await.0, b"body");
    }
}

#[tokio::test]
async fn an_upload_that_is_dropped_half_way_is_taken_back() {
    let world = world(BlobBackend::Directory);
    let bytes = content(2 * PART);
    let pieces = Box::pin(in_pieces(&bytes).chain(stream::pending()));
    let tenant = tenant();
    {
        let mut keeping = std::pin::pin!(world.blobs.keep(&tenant, pieces, LIMIT));
        while world.unfinished().is_empty() {
            assert!(futures_util::poll!(keeping.as_mut()).is_pending());
            tokio::task::yield_now().await;
        }
    }
    while !world.unfinished().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.bodies(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn storage_that_is_not_there_is_unavailable_and_not_missing() {
    let mut world = world(BlobBackend::S3);
    let body = world.keep(b"body").await.unwrap();
    world.s3.as_mut().unwrap().kill();
    for error in [
        world.read(&body).await.1,
        world.keep(b"other").await.err(),
        world.blobs.find(&tenant(), body.hash).await.err(),
        world.blobs.delete(&Blob { tenant: tenant(), body }).await.err(),
        world.blobs.delete_unfinished(Timestamp::MAX).await.err(),
    ] {
        assert!(matches!(error, Some(BodyError::Unavailable(_))), "{error:?}");
    }
    world.s3.as_mut().unwrap().resume();
    assert_eq!(world.read(&body).await.0, b"body");
}

#[tokio::test]
async fn storage_that_dies_half_way_gives_no_end() {
    let mut world = world(BlobBackend::S3);
    let body = world.keep(&content(4 * PART)).await.unwrap();
    let mut pieces = world.blobs.open(&tenant(), &body).await.unwrap();
    let first = pieces.next().await.unwrap().unwrap();
    world.s3.as_mut().unwrap().kill();
    let (rest, error) = collect(pieces).await;
    assert!(matches!(error, Some(BodyError::Unavailable(_))), "{error:?}");
    assert!(((first.len() + rest.len()) as u64) < body.length);
}

#[tokio::test]
async fn a_place_has_one_identity_whoever_asks_and_however_often() {
    for backend in FILE_BACKENDS {
        let world = world(backend);
        let other = world.neighbour();
        assert_eq!(world.blobs.identity().await.unwrap(), None, "{backend:?}: looking marks nothing");
        let mine = world.blobs.mark().await.unwrap();
        assert_eq!(mine, BlobStorageId::of(1 << 64 | 2), "{backend:?}: it is drawn");
        assert_eq!(other.mark().await.unwrap(), mine, "{backend:?}");
        assert_eq!(other.identity().await.unwrap(), Some(mine), "{backend:?}");
        let marker = world.root().join("place");
        assert_eq!(std::fs::read_to_string(marker).unwrap(), format!("{mine}\n"), "{backend:?}");
        let elsewhere = self::world(backend);
        let open = open(&elsewhere.url, &keys(), elsewhere.store.clone(), 2_000);
        assert_ne!(open.mark().await.unwrap(), mine, "{backend:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_mark_a_directory_at_the_same_moment_agree() {
    for round in 0..50 {
        let world = world(BlobBackend::Directory);
        let other = world.neighbour();
        let (mine, theirs) = tokio::join!(world.blobs.mark(), tokio::spawn(async move { other.mark().await }));
        let (mine, theirs) = (mine.unwrap(), theirs.unwrap().unwrap());
        assert_eq!(mine, theirs, "round {round}");
        assert_eq!(world.blobs.identity().await.unwrap(), Some(mine), "round {round}");
    }
}

/// A volume that is not mounted, a bucket that was made anew: the bodies may be somewhere.
#[tokio::test]
async fn a_body_is_not_missing_where_the_place_itself_is_gone() {
    for backend in FILE_BACKENDS {
        let world = world(backend);
        let body = world.keep(b"body").await.unwrap();
        let mine = world.blobs.mark().await.unwrap();
        let (marker, bodies, away) =
            (world.root().join("place"), world.root().join("bodies"), world.root().join("away"));
        std::fs::rename(&bodies, &away).unwrap();
        assert!(matches!(world.read(&body).await.1, Some(BodyError::Missing)), "{backend:?}: this body is lost");
        std::fs::remove_file(&marker).unwrap();
        assert!(matches!(world.read(&body).await.1, Some(BodyError::Unavailable(_))), "{backend:?}");
        std::fs::write(&marker, BlobStorageId::of(7).to_string()).unwrap();
        assert!(matches!(world.read(&body).await.1, Some(BodyError::Unavailable(_))), "{backend:?}");
        std::fs::write(&marker, mine.to_string()).unwrap();
        std::fs::rename(&away, &bodies).unwrap();
        assert_eq!(world.read(&body).await.0, b"body", "{backend:?}");
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_used_says_why() {
    let s3 = S3::start();
    let store = Arc::new(MemoryStore::new());
    let wrong = Credentials { secret_access_key: Some("wrong".into()), ..keys() };
    let refused = open(&s3.url(), &wrong, store.clone(), 1).mark().await.unwrap_err().to_string();
    assert!(refused.contains("403") || refused.contains("SignatureDoesNotMatch"), "{refused}");
    // That port does not speak TLS.
    let secure = s3.url().replace("http://", "https://");
    let refused = open(&secure, &keys(), store.clone(), 1).mark().await.unwrap_err().to_string();
    assert!(!refused.is_empty() && !refused.contains("403"), "{refused}");
    let (gone, _) = { (s3.url(), drop(s3)) };
    let refused = open(&gone, &keys(), store, 1).mark().await.unwrap_err().to_string();
    assert!(refused.to_lowercase().contains("connect"), "{refused}");
}

/// Every file and directory below `root`, itself included, with its rights.
#[cfg(unix)]
fn rights_below(root: &std::path::Path) -> Vec<(PathBuf, bool, u32)> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = std::fs::metadata(root).unwrap();
    let mut found = vec![(root.to_owned(), metadata.is_dir(), metadata.permissions().mode() & 0o777)];
    if metadata.is_dir() {
        for entry in std::fs::read_dir(root).unwrap() {
            found.extend(rights_below(&entry.unwrap().path()));
        }
    }
    found
}

#[cfg(unix)]
#[tokio::test]
async fn files_and_directories_are_their_owners_alone() {
    let world = world(BlobBackend::Directory);
    world.blobs.mark().await.unwrap();
    let (small, large) = (world.keep(b"small").await.unwrap(), world.keep(&content(PART + 1)).await.unwrap());
    // One that never comes to its end, so that a file is half written.
    let (feed, pieces) = tokio::sync::mpsc::channel::<Result<Bytes, BodyError>>(4);
    let pieces = stream::unfold(pieces, |mut pieces| async { pieces.recv().await.map(|piece| (piece, pieces)) });
    let (tenant, mut rights) = (tenant(), Vec::new());
    let keeping = world.blobs.keep(&tenant, Box::pin(pieces), LIMIT);
    let looking = async {
        feed.send(Ok(content(PART + 1).into())).await.unwrap();
        while world.unfinished().is_empty() {
            tokio::task::yield_now().await;
        }
        rights = rights_below(&world.directory.as_ref().unwrap().path().join("not"));
    };
    tokio::select! {
        biased;
        kept = keeping => panic!("{kept:?}"),
        () = looking => {}
    }
    let is_of = |body: &BodyRef| rights.iter().any(|(path, ..)| path.to_string_lossy().contains(&body.hash.hex()));
    assert!(is_of(&small) && is_of(&large), "{rights:?}");
    for (path, is_directory, mode) in rights {
        // Uploads in progress are in a directory that only its owner can enter.
        let is_unfinished = !is_directory && path.parent().unwrap().ends_with("incoming");
        match (is_directory, is_unfinished) {
            (true, _) => assert_eq!(mode, 0o700, "{}", path.display()),
            (false, false) => assert_eq!(mode, 0o600, "{}", path.display()),
            (false, true) => {}
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn what_an_older_program_left_open_is_closed() {
    use std::os::unix::fs::PermissionsExt;
    let world = world(BlobBackend::Directory);
    world.keep(b"body").await.unwrap();
    let open_up = |name: &str| {
        std::fs::set_permissions(world.root().join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    ["", "bodies", "incoming"].iter().for_each(|name| open_up(name));
    world.neighbour();
    let mode = |name: &str| std::fs::metadata(world.root().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(["bodies", "incoming"].map(mode), [0o700; 2]);
    assert_eq!(mode(""), 0o755, "the permissions of the root belong to its owner");
}
