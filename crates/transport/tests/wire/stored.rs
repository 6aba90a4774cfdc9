//! Bodies that are kept apart from their task, on their way out and on their way in.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use redrive_blobs::{Blobs, Credentials, Location, Parts};
use redrive_core::{Answer, Body, BodyHash, BodyRef, ErrorType, TenantId, Timestamp};
use redrive_engine::bodies::{Bodies, BodyError, Pieces};
use redrive_engine::clock::SystemClock;
use redrive_engine::entropy::Entropy;
use redrive_store::{Blob, MemoryStore};
use redrive_transport::{HttpTransport, Options, PlainProtocol};
use tokio::sync::Notify;

use crate::call::{SHORT, call, transport};
use crate::s3::{self, Fault, S3, files_below};
use crate::support::behaviours::{self, OK};
use crate::support::{Request, Server, http2};

/// More than sockets and windows hold.
const LARGE: usize = 24 * 1024 * 1024;

struct Counting(AtomicU64);

impl Entropy for Counting {
    fn bits(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

fn open(url: &str) -> Arc<Blobs> {
    let parts = Parts {
        store: Arc::new(MemoryStore::new()),
        clock: Arc::new(SystemClock::start()),
        entropy: Arc::new(Counting(1.into())),
    };
    let credentials = Credentials {
        access_key_id: Some(s3::ACCESS_KEY_ID.into()),
        secret_access_key: Some(s3::SECRET_ACCESS_KEY.into()),
        session_token: None,
    };
    Arc::new(Blobs::open(&Location::parse(url).unwrap(), &credentials, parts).unwrap())
}

fn in_directory(directory: &Path) -> Arc<Blobs> {
    open(&format!("file://{}", directory.display()))
}

fn over(blobs: &Arc<Blobs>, options: Options) -> HttpTransport {
    transport(options).with_bodies(blobs.clone())
}

fn both() -> [Options; 2] {
    [PlainProtocol::Http1, PlainProtocol::Http2].map(|plain| Options { plain, ..Options::default() })
}

/// Answers every request that is complete.
async fn server(plain: PlainProtocol) -> Server {
    match plain {
        PlainProtocol::Http1 => Server::start(|visitor| behaviours::answer(visitor, OK)).await,
        PlainProtocol::Http2 => {
            Server::start(|visitor| http2::serve(visitor, |_: Request| async { http2::ok() })).await
        }
    }
}

fn content(length: usize) -> Vec<u8> {
    (0..length as u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

async fn keep(blobs: &Blobs, bytes: &[u8]) -> BodyRef {
    let pieces: Vec<_> = bytes.chunks(1 << 16).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    blobs.keep(&TenantId::default_tenant(), Box::pin(stream::iter(pieces)), u64::MAX).await.unwrap()
}

async fn read(blobs: &Blobs, body: &BodyRef) -> Vec<u8> {
    let mut pieces = blobs.open(&TenantId::default_tenant(), body).await.unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.next().await {
        bytes.extend_from_slice(&piece.unwrap());
    }
    bytes
}

#[tokio::test]
async fn a_stored_body_goes_out_whole_and_with_its_length() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = in_directory(directory.path());
    for options in both() {
        let (server, transport) = (server(options.plain).await, over(&blobs, options));
        for length in [0, 1, 100_000, LARGE] {
            let bytes = content(length);
            let body = keep(&blobs, &bytes).await;
            let answer = call(server.url("/")).stored(body).over(&transport).await.unwrap();
            assert_eq!(answer.body.inline().unwrap(), "ok");
            let request = server.requests().pop().unwrap();
            assert_eq!(request.one("content-length"), Some(length.to_string().as_str()));
            assert_eq!(request.one("transfer-encoding"), None);
            assert!(request.body == bytes, "{} bytes came of {length}", request.body.len());
        }
        assert_eq!(server.counts().accepted, 1, "the connection is used again");
    }
}

#[tokio::test]
async fn of_a_body_that_is_not_there_nothing_is_sent() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = in_directory(directory.path());
    let missing = BodyRef { hash: BodyHash::of(b"never kept"), length: 10, copy: 7 };
    let cut = keep(&blobs, &content(100_000)).await;
    std::fs::write(&files_below(directory.path().join("bodies"))[0], b"too short").unwrap();
    for options in both() {
        let (server, transport) = (server(options.plain).await, over(&blobs, options.clone()));
        let (kind, message) = call(server.url("/")).stored(missing).fails_over(&transport).await;
        assert_eq!((kind, message.as_str()), (ErrorType::BodyMissing, "the stored body is not there"));
        let (kind, _) = call(server.url("/")).stored(cut).fails_over(&transport).await;
        assert_eq!(kind, ErrorType::BodyDamaged);
        let without = crate::call::transport(options);
        let (kind, _) = call(server.url("/")).stored(missing).fails_over(&without).await;
        assert_eq!(kind, ErrorType::BodyUnavailable);
        assert_eq!(server.counts().accepted, 0, "not even a connection was made");
    }
}

#[tokio::test]
async fn while_storage_is_not_there_nothing_is_sent() {
    let mut s3 = S3::start();
    let blobs = open(&s3.url());
    let body = keep(&blobs, &content(100_000)).await;
    s3.kill();
    for options in both() {
        let (server, transport) = (server(options.plain).await, over(&blobs, options));
        let (kind, _) = call(server.url("/")).stored(body).fails_over(&transport).await;
        assert_eq!((kind, server.counts().accepted), (ErrorType::BodyUnavailable, 0));
    }
}

/// Neither a missing bucket nor an answer that is cut off says anything about the body.
#[tokio::test]
async fn a_fault_of_s3_is_not_a_lost_body() {
    let s3 = S3::start();
    let blobs = open(&s3.url());
    blobs.mark().await.unwrap();
    let body = keep(&blobs, &content(100_000)).await;
    for options in both() {
        let (server, transport) = (server(options.plain).await, over(&blobs, options));
        let unavailable: &[ErrorType] = &[ErrorType::BodyUnavailable];
        for (fault, expected) in [
            (Fault::not_found("NoSuchBucket"), unavailable),
            (Fault::Answer(404, "no such page".into()), unavailable),
            (Fault::Shortened(90_000), unavailable),
            // Whether the beginning arrives before the connection is gone is the machine's own.
            (Fault::CutAfter(10_000), &[ErrorType::BodyIncomplete, ErrorType::BodyUnavailable]),
        ] {
            let told = format!("{fault:?}");
            s3.fail(move |method, _| (method == "GET").then(|| fault.clone()));
            let (kind, message) = call(server.url("/")).stored(body).fails_over(&transport).await;
            assert!(expected.contains(&kind), "{told}: {kind:?}: {message}");
        }
        s3.heal();
        call(server.url("/")).stored(body).over(&transport).await.unwrap();
    }
}

#[tokio::test]
async fn a_damaged_body_is_never_whole_to_the_dependency() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = in_directory(directory.path());
    let good = keep(&blobs, b"good").await;
    for options in both() {
        let (server, transport) = (server(options.plain).await, over(&blobs, options));
        for length in [100, LARGE] {
            let mut bytes = content(length);
            let body = keep(&blobs, &bytes).await;
            let files = files_below(directory.path().join("bodies"));
            let file = files.iter().find(|file| file.to_str().unwrap().contains(&body.hash.hex())).unwrap();
            bytes[length - 1] ^= 1;
            std::fs::write(file, &bytes).unwrap();
            let (kind, message) = call(server.url("/")).stored(body).fails_over(&transport).await;
            assert_eq!(kind, ErrorType::BodyDamaged, "{message}");
            std::fs::remove_file(file).unwrap();
        }
        // It is over for the server, too, when the next call has been answered.
        call(server.url("/good")).stored(good).over(&transport).await.unwrap();
        for request in server.requests() {
            let expected: &[u8] = if request.target == "/good" { b"good" } else { b"" };
            assert!(request.body == expected, "{} bytes were taken for the whole", request.body.len());
        }
    }
}

/// The dependency has begun to take the body in, and then storage dies.
#[tokio::test]
async fn a_body_that_breaks_off_is_never_whole_to_the_dependency() {
    for plain in [PlainProtocol::Http1, PlainProtocol::Http2] {
        let mut s3 = S3::start();
        let blobs = open(&s3.url());
        let body = keep(&blobs, &content(LARGE)).await;
        let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let server = slow_server(plain, begun.clone(), go_on.clone()).await;
        let transport = over(&blobs, Options { plain, ..Options::default() });
        let sending = call(server.url("/")).stored(body).fails_over(&transport);
        let killing = async {
            begun.notified().await;
            s3.kill();
            go_on.notify_one();
        };
        let ((kind, message), ()) = tokio::join!(sending, killing);
        assert_eq!(kind, ErrorType::BodyIncomplete, "{message}");
        server.wait_for(|counts| counts.requests == 1).await;
        let request = server.requests().pop().unwrap();
        assert_eq!(request.one("content-length"), Some(LARGE.to_string().as_str()));
        assert!(request.body.is_empty(), "{} bytes were taken for the whole", request.body.len());
    }
}

/// Reads the head, and the body once it may.
async fn slow_server(plain: PlainProtocol, begun: Arc<Notify>, go_on: Arc<Notify>) -> Server {
    match plain {
        PlainProtocol::Http1 => {
            Server::start(move |mut visitor| {
                let (begun, go_on) = (begun.clone(), go_on.clone());
                async move {
                    visitor.read_head().await.unwrap();
                    begun.notify_one();
                    go_on.notified().await;
                    let all = visitor.read_bytes(LARGE).await;
                    assert!(all.is_none(), "all of it came");
                }
            })
            .await
        }
        PlainProtocol::Http2 => {
            Server::start(move |visitor| {
                let (begun, go_on) = (begun.clone(), go_on.clone());
                http2::serve_slowly(visitor, begun, go_on)
            })
            .await
        }
    }
}

/// Answers with a body of this many bytes.
async fn answering(length: usize) -> (Server, Vec<u8>) {
    let bytes = content(length);
    let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").into_bytes();
    answer.extend_from_slice(&bytes);
    (Server::start(move |visitor| behaviours::answer(visitor, answer.clone())).await, bytes)
}

fn keeping(most: u64) -> Options {
    Options { inline_answer_bytes: 1_000, kept_answer_bytes: most, ..Options::default() }
}

#[tokio::test]
async fn what_is_too_large_of_an_answer_is_kept_apart_up_to_the_limit() {
    const MOST: u64 = 10_000_000;
    let directory = tempfile::tempdir().unwrap();
    let blobs = in_directory(directory.path());
    let transport = over(&blobs, keeping(MOST));
    // how many bytes the answer has, how many are kept, whether apart
    let cases = [
        (999, 999, false),
        (1_000, 1_000, false),
        (1_001, 1_001, true),
        (100_000, 100_000, true),
        (10_000_000, 10_000_000, true),
        (10_000_001, 10_000_000, true),
        (LARGE, 10_000_000, true),
    ];
    for (length, kept, apart) in cases {
        let (server, bytes) = answering(length).await;
        for _ in 0..2 {
            let Answer { body, truncated, .. } = call(server.url("/")).over(&transport).await.unwrap();
            assert_eq!((truncated, body.length()), (kept < length, kept as u64), "{length} bytes");
            let found = match body {
                Body::Stored(stored) if apart => read(&blobs, &stored).await,
                Body::Inline(inline) if !apart => inline.to_vec(),
                other => panic!("{length} bytes: {other:?}"),
            };
            assert!(found == bytes[..kept], "{length} bytes: other ones");
        }
        let accepted = if kept < length { 2 } else { 1 };
        assert_eq!(server.counts().accepted, accepted, "{length} bytes: a connection is used again if nothing is left");
    }
}

#[tokio::test]
async fn an_answer_is_not_lost_because_it_cannot_be_stored() {
    let mut s3 = S3::start();
    let blobs = open(&s3.url());
    s3.kill();
    let transport = over(&blobs, keeping(1_000_000));
    let (server, bytes) = answering(100_000).await;
    let answer = call(server.url("/")).over(&transport).await.unwrap();
    assert_eq!((answer.status, answer.truncated), (200, true));
    assert_eq!(answer.body.inline().unwrap(), &bytes[..1_000]);
}

/// A volume that is not mounted leaves an empty directory.
#[tokio::test]
async fn an_answer_is_not_stored_in_another_directory() {
    let temporary = tempfile::tempdir().unwrap();
    let (directory, away) = (temporary.path().join("bodies"), temporary.path().join("away"));
    let blobs = in_directory(&directory);
    blobs.mark().await.unwrap();
    let transport = over(&blobs, keeping(1_000_000));
    let (server, bytes) = answering(100_000).await;
    std::fs::rename(&directory, &away).unwrap();
    std::fs::create_dir(&directory).unwrap();
    let answer = call(server.url("/")).over(&transport).await.unwrap();
    assert_eq!((answer.truncated, answer.body.inline().unwrap().as_ref()), (true, &bytes[..1_000]));
    assert_eq!(files_below(directory.clone()), Vec::<std::path::PathBuf>::new());
    std::fs::remove_dir(&directory).unwrap();
    std::fs::rename(&away, &directory).unwrap();
    let answer = call(server.url("/")).over(&transport).await.unwrap();
    assert!(!answer.truncated && read(&blobs, answer.body.stored().unwrap()).await == bytes);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = in_directory(directory.path());
    let transport = over(&blobs, keeping(1_000_000));
    let broken = format!("HTTP/1.1 200 OK\r\ncontent-length: 500000\r\n\r\n{}", "x".repeat(100_000));
    let server = Server::start(move |visitor| behaviours::answer_and_close(visitor, broken.clone())).await;
    let (kind, _) = call(server.url("/")).fails_over(&transport).await;
    assert_eq!(kind, ErrorType::ConnectionReset);
    assert_eq!(files_below(directory.path().to_owned()), Vec::<std::path::PathBuf>::new());
}

/// Storage that has the first piece of every body and never brings the second.
struct Stalling;

#[async_trait::async_trait]
impl Bodies for Stalling {
    async fn keep(&self, _: &TenantId, _: Pieces, _: u64) -> Result<BodyRef, BodyError> {
        Err(BodyError::Unavailable("it keeps nothing".into()))
    }

    async fn find(&self, _: &TenantId, _: BodyHash) -> Result<Option<BodyRef>, BodyError> {
        Ok(None)
    }

    async fn open(&self, _: &TenantId, _: &BodyRef) -> Result<Pieces, BodyError> {
        Ok(Box::pin(stream::iter([Ok(Bytes::from_static(b"the beginning"))]).chain(stream::pending())))
    }

    async fn delete(&self, _: &Blob) -> Result<(), BodyError> {
        Ok(())
    }

    async fn delete_unfinished(&self, _: Timestamp) -> Result<usize, BodyError> {
        Ok(0)
    }
}

#[tokio::test]
async fn storage_that_stalls_is_not_a_dependency_that_is_late() {
    let body = BodyRef { hash: BodyHash::of(b"never read"), length: 1_000, copy: 1 };
    for options in both() {
        let (server, transport) = (server(options.plain).await, transport(options).with_bodies(Arc::new(Stalling)));
        let call = call(server.url("/")).stored(body).attempt_timeout(SHORT);
        let (kind, message) = call.fails_over(&transport).await;
        assert_eq!(kind, ErrorType::BodyIncomplete, "{message}");
        assert!(message.contains("the next piece did not come within"), "{message}");
    }
}
