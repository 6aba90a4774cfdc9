//! Connections with TLS, to servers with good and bad certificates.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::time::Duration;

use redrive_dial::{DialErrorKind, Dialer, Endpoint, Options, Roots};
use support::tls::{Authority, Quality};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Long enough to never run out in a test that does not want it to.
const PLENTY: Duration = Duration::from_secs(60);

/// A server that answers each line with itself; its port.
async fn echo(authority: &Authority, quality: Quality, protocols: &[&str]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = authority.acceptor(quality, protocols);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let (mut read, mut write) = tokio::io::split(stream);
            tokio::io::copy(&mut read, &mut write).await.ok();
        }
    });
    port
}

fn dialer(trusted: Option<&Authority>, alpn: &[&str]) -> Dialer {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.pem");
    let extra_ca = trusted.map(|authority| {
        std::fs::write(&file, authority.pem()).unwrap();
        file
    });
    let alpn = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let extra_ca = extra_ca.into_iter().collect();
    Dialer::new(&Options { roots: Roots::ExtraOnly, extra_ca, alpn, ..Options::default() }).unwrap()
}

#[tokio::test]
async fn a_trusted_certificate_makes_a_connection_with_the_protocol_that_both_sides_have() {
    let authority = Authority::new();
    for (offered, expected) in [(&["h2", "http/1.1"][..], Some("h2")), (&["http/1.1"], Some("http/1.1")), (&[], None)] {
        let port = echo(&authority, Quality::Good, offered).await;
        let endpoint = Endpoint::new("localhost", port, true).unwrap();
        let mut stream = dialer(Some(&authority), &["h2", "http/1.1"]).dial(&endpoint, PLENTY, |_| ()).await.unwrap();
        assert_eq!(stream.alpn(), expected.map(str::as_bytes));
        stream.write_all(b"hello").await.unwrap();
        stream.flush().await.unwrap();
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"hello");
    }
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_makes_no_connection() {
    let authority = Authority::new();
    for (quality, trusted, reason) in [
        (Quality::Good, &Authority::new(), "invalid peer certificate"),
        (Quality::SelfSigned, &authority, "invalid peer certificate"),
        (Quality::OtherName, &authority, "not valid for name"),
        (Quality::Expired, &authority, "expired"),
    ] {
        let port = echo(&authority, quality, &[]).await;
        let endpoint = Endpoint::new("localhost", port, true).unwrap();
        let failed = dialer(Some(trusted), &[]).dial(&endpoint, PLENTY, |_| ()).await.unwrap_err();
        assert_eq!(failed.kind, DialErrorKind::TlsCertificate, "{quality:?}");
        assert!(failed.message.contains(reason), "{quality:?}: {failed}");
    }
}

#[tokio::test]
async fn without_any_trusted_authority_nothing_is_connected() {
    let endpoint = Endpoint::new("localhost", 9, true).unwrap();
    let failed = dialer(None, &[]).dial(&endpoint, PLENTY, |_| ()).await.unwrap_err();
    assert_eq!(failed.kind, DialErrorKind::TlsCertificate);
    assert!(failed.message.starts_with("no certificate authority is trusted"), "{failed}");
}
