//! S3 behind a certificate of an authority of one's own.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

#[path = "support/s3.rs"]
mod s3;
#[path = "../../dial/tests/support/tls.rs"]
#[allow(dead_code, unreachable_pub, reason = "another crate's tests use the rest of it")]
mod tls;

use std::path::PathBuf;
use std::sync::Arc;

use redrive_blobs::{Blobs, Credentials, Location, OpenError, Parts};
use redrive_engine::clock::SystemClock;
use redrive_engine::entropy::Entropy;
use redrive_store::MemoryStore;
use s3::S3;
use tls::{Authority, Quality};
use tokio::net::{TcpListener, TcpStream};

struct Same;

impl Entropy for Same {
    fn bits(&self) -> u64 {
        7
    }
}

/// Speaks TLS in front of a server that does not. Answers its own port.
async fn in_front_of(s3: &S3, authority: &Authority) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = authority.acceptor(Quality::Good, &["http/1.1"]);
    let behind = s3.url().split_once("http://").unwrap().1.to_owned();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, behind) = (acceptor.clone(), behind.clone());
            tokio::spawn(async move {
                // Who does not trust the certificate hangs up.
                let Ok(mut secure) = acceptor.accept(stream).await else { return };
                let mut plain = TcpStream::connect(behind).await.unwrap();
                tokio::io::copy_bidirectional(&mut secure, &mut plain).await.ok();
            });
        }
    });
    port
}

fn open(url: &str, extra_ca: &[PathBuf]) -> Result<Blobs, OpenError> {
    let parts =
        Parts { store: Arc::new(MemoryStore::new()), clock: Arc::new(SystemClock::start()), entropy: Arc::new(Same) };
    let keys = Credentials {
        access_key_id: Some(s3::ACCESS_KEY_ID.into()),
        secret_access_key: Some(s3::SECRET_ACCESS_KEY.into()),
        session_token: None,
    };
    Blobs::open_trusting(&Location::parse(url).unwrap(), &keys, extra_ca, parts)
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted_where_a_file_says_so() {
    let (s3, authority, directory) = (S3::start(), Authority::new(), tempfile::tempdir().unwrap());
    let url = format!("s3://bodies/redrive?endpoint=https://localhost:{}", in_front_of(&s3, &authority).await);
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, authority.pem()).unwrap();
    let refused = open(&url, &[]).unwrap().mark().await.unwrap_err().to_string();
    assert!(refused.contains("certificate"), "{refused}");
    open(&url, &[file]).unwrap().mark().await.unwrap();
    assert!(s3.root().join("place").is_file());
}

#[test]
fn a_file_without_a_certificate_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let (empty, absent) = (directory.path().join("empty.pem"), directory.path().join("absent.pem"));
    std::fs::write(&empty, "nothing").unwrap();
    for file in [empty, absent] {
        let error = open("s3://bodies", std::slice::from_ref(&file)).unwrap_err().to_string();
        assert!(error.contains(file.to_str().unwrap()), "{error}");
    }
}
