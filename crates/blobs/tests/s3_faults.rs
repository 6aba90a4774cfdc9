//! Answers of S3, or of something in front of it, that say nothing about a body.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};

use redrive_core::Timestamp;
use redrive_engine::bodies::{Bodies, BodyError};
use redrive_store::{Blob, BlobStorageId, Store};
use support::s3::{Fault, S3};
use support::{BlobBackend, PART, World, content, tenant, world};

/// Blob storage in a bucket that has its marker.
async fn marked() -> World {
    let world = world(BlobBackend::S3);
    world.blobs.mark().await.unwrap();
    world
}

fn s3(world: &World) -> &S3 {
    world.s3.as_ref().unwrap()
}

fn is_unavailable<T: std::fmt::Debug>(answer: &Result<T, BodyError>) -> bool {
    matches!(answer, Err(BodyError::Unavailable(_)))
}

/// A missing bucket, by S3's own word, and a proxy that knows no such path.
fn not_found() -> [Fault; 2] {
    [Fault::not_found("NoSuchBucket"), Fault::Answer(404, "<html>no such page</html>".into())]
}

fn is_body(path: &str) -> bool {
    path.contains("/bodies/redrive/bodies/")
}

/// What the first request for the body gets, and what those get that ask for the rest of it.
#[tokio::test]
async fn a_body_that_is_cut_off_on_its_way_is_not_damaged() {
    let world = marked().await;
    let body = world.keep(&content(200_000)).await.unwrap();
    for (first, later) in [
        (Fault::CutAfter(0), Fault::CutAfter(0)),
        (Fault::CutAfter(20_000), Fault::CutAfter(20_000)),
        (Fault::CutAfter(20_000), Fault::Shortened(20_000)),
        (Fault::Shortened(150_000), Fault::Shortened(150_000)),
    ] {
        let (faults, is_first) = ([first.clone(), later.clone()], AtomicBool::new(true));
        s3(&world).fail(move |method, path| {
            let [first, later] = &faults;
            let is_cut = method == "GET" && is_body(path);
            is_cut.then(|| if is_first.swap(false, Ordering::Relaxed) { first.clone() } else { later.clone() })
        });
        let (read, error) = world.read(&body).await;
        assert!(matches!(error, Some(BodyError::Unavailable(_))), "{first:?}, {later:?}: {error:?}");
        assert!((read.len() as u64) < body.length, "{first:?}, {later:?}");
    }
    s3(&world).heal();
    assert_eq!(world.read(&body).await.0, content(200_000));
}

#[tokio::test]
async fn a_put_that_is_answered_with_404_is_a_fault_of_storage() {
    let world = marked().await;
    for fault in not_found() {
        for (length, method) in [(1_000, "PUT"), (PART + 1, "PUT"), (PART + 1, "POST")] {
            let answer = fault.clone();
            s3(&world).fail(move |asked, _| (asked == method).then(|| answer.clone()));
            let kept = world.keep(&content(length)).await;
            assert!(is_unavailable(&kept), "{fault:?}, {method}: {kept:?}");
        }
    }
    s3(&world).heal();
    world.keep(&content(PART + 1)).await.unwrap();
}

#[tokio::test]
async fn only_a_missing_key_is_a_missing_body() {
    let world = marked().await;
    let body = world.keep(b"body").await.unwrap();
    for fault in not_found() {
        // Of the whole bucket, and of the body alone.
        for only_bodies in [false, true] {
            let answer = fault.clone();
            s3(&world).fail(move |_, path| (!only_bodies || is_body(path)).then(|| answer.clone()));
            let error = world.read(&body).await.1;
            assert!(matches!(error, Some(BodyError::Unavailable(_))), "{fault:?}: {error:?}");
        }
        let answer = fault.clone();
        s3(&world).fail(move |_, _| Some(answer.clone()));
        for answer in [
            world.keep(b"body").await.map(drop),
            world.blobs.find(&tenant(), body.hash).await.map(drop),
            world.blobs.delete(&Blob { tenant: tenant(), body }).await,
            world.blobs.delete_unfinished(Timestamp::MAX).await.map(drop),
            world.blobs.check().await,
        ] {
            assert!(is_unavailable(&answer), "{fault:?}: {answer:?}");
        }
    }
    s3(&world).fail(|method, path| (method == "GET" && is_body(path)).then(|| Fault::not_found("NoSuchKey")));
    let error = world.read(&body).await.1;
    assert!(matches!(error, Some(BodyError::Unavailable(_))), "a look at it finds it: {error:?}");
    s3(&world).heal();
    std::fs::remove_file(&world.bodies()[0]).unwrap();
    assert!(matches!(world.read(&body).await.1, Some(BodyError::Missing)));
}

/// The bucket was made anew, or is another service's.
#[tokio::test]
async fn nothing_is_kept_or_deleted_in_a_bucket_without_the_right_marker() {
    let world = marked().await;
    let body = world.keep(b"body").await.unwrap();
    let marker = world.root().join("place");
    let mine = std::fs::read(&marker).unwrap();
    for wrong in [None, Some(BlobStorageId::of(7))] {
        std::fs::remove_file(&marker).ok();
        if let Some(wrong) = wrong {
            std::fs::write(&marker, wrong.to_string()).unwrap();
        }
        for answer in [
            world.keep(b"other").await.map(drop),
            world.keep(b"body").await.map(drop),
            world.blobs.delete(&Blob { tenant: tenant(), body }).await,
            world.blobs.delete_unfinished(Timestamp::MAX).await.map(drop),
            world.blobs.check().await,
        ] {
            assert!(is_unavailable(&answer), "{answer:?}");
        }
        assert_eq!((world.bodies().len(), world.unfinished()), (1, vec![]));
    }
    std::fs::write(&marker, mine).unwrap();
    world.blobs.check().await.unwrap();
    world.keep(b"other").await.unwrap();
    world.store.blobs().condemn(Timestamp::MAX, None, 10).await.unwrap();
    world.blobs.delete(&Blob { tenant: tenant(), body }).await.unwrap();
}

#[tokio::test]
async fn a_bucket_that_is_swapped_while_a_body_is_written_does_not_keep_it() {
    let world = marked().await;
    for length in [1_000, PART + 1] {
        let marker = world.root().join("place");
        let mine = std::fs::read(&marker).unwrap();
        let (removed, is_there) = (marker.clone(), AtomicBool::new(true));
        // Whatever is written comes after the first look at the marker.
        s3(&world).fail(move |method, _| {
            if method != "GET" && is_there.swap(false, Ordering::Relaxed) {
                std::fs::remove_file(&removed).unwrap();
            }
            None
        });
        let kept = world.keep(&content(length)).await;
        assert!(is_unavailable(&kept), "{length} bytes: {kept:?}");
        s3(&world).heal();
        std::fs::write(&marker, mine).unwrap();
        let body = world.keep(&content(length)).await.unwrap();
        assert_eq!(world.read(&body).await.0, content(length));
    }
}

/// Every node has the same S3: taking all of them out of service for its outage would make things worse.
#[tokio::test]
async fn a_bucket_that_does_not_answer_is_not_a_wrong_one() {
    let mut world = marked().await;
    world.s3.as_mut().unwrap().kill();
    world.blobs.check().await.unwrap();
}
