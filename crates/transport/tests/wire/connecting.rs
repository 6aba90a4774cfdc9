//! Connections that do not come about.

use redrive_core::ErrorType;
use redrive_transport::{HttpTransport, Options, Roots};

use crate::call::{SHORT, call, transport};
use crate::support::tls::{Authority, Quality};
use crate::support::{Full, Server, behaviours, unused_address};

#[tokio::test]
async fn a_port_without_a_listener_is_a_refused_connection() {
    let address = unused_address().await;
    let url = format!("http://user:secret@{address}/path?token=secret");
    let (kind, message) = call(url).fails_over(&transport(Options::default())).await;
    assert_eq!(kind, ErrorType::ConnectionRefused);
    assert!(message.contains(&format!("connect to {address}")), "{message}");
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_a_dns_error() {
    let (kind, message) = call("http://nowhere.invalid/").fails_over(&transport(Options::default())).await;
    assert_eq!(kind, ErrorType::Dns);
    assert!(message.contains("nowhere.invalid:80"), "{message}");
}

#[tokio::test]
async fn a_peer_that_does_not_accept_is_a_connect_timeout() {
    let full = Full::start().await;
    let call = call(format!("http://{}/", full.address())).connect_timeout(SHORT);
    let (kind, message) = call.fails_over(&transport(Options::default())).await;
    assert_eq!(kind, ErrorType::ConnectTimeout);
    assert!(message.contains(&full.address().to_string()), "{message}");
}

/// The system would drop, and repeat after a second, what does not fit into the queue of a peer that many connect to at
/// once.
#[tokio::test]
async fn connections_are_opened_a_few_at_a_time_and_who_waits_for_that_has_not_failed() {
    let full = Full::start().await;
    let transport = transport(Options::default());
    let calls =
        (0..200).map(|_| call(format!("http://{}/", full.address())).attempt_timeout(SHORT).fails_over(&transport));
    let failed = futures_util::future::join_all(calls).await;
    let of = |kind| failed.iter().filter(|(failed, _)| *failed == kind).count();
    assert_eq!((of(ErrorType::ConnectTimeout), of(ErrorType::NotSent)), (64, 136), "{:?}", failed.last());
}

#[tokio::test]
async fn an_attempt_that_ends_before_it_is_connected_is_a_connect_timeout_too() {
    let full = Full::start().await;
    let call = call(format!("http://{}/", full.address())).attempt_timeout(SHORT);
    assert_eq!(call.fails_over(&transport(Options::default())).await.0, ErrorType::ConnectTimeout);
}

#[tokio::test]
async fn a_peer_that_accepts_and_keeps_silent_is_a_tls_handshake_timeout() {
    let transport = trusting(&Authority::new());
    let server = Server::start(behaviours::ignore).await;
    let call = call(server.secure_url("/")).connect_timeout(SHORT);
    assert_eq!(call.fails_over(&transport).await.0, ErrorType::TlsHandshakeTimeout);
}

#[tokio::test]
async fn a_peer_that_answers_in_plain_text_is_a_tls_handshake_error() {
    let transport = trusting(&Authority::new());
    let server = Server::start(|visitor| behaviours::say_first(visitor, "HTTP/1.1 400 Bad Request\r\n\r\n")).await;
    assert_eq!(call(server.secure_url("/")).fails_over(&transport).await.0, ErrorType::TlsHandshake);
}

#[tokio::test]
async fn a_peer_that_resets_during_the_handshake_is_a_reset_connection() {
    let transport = trusting(&Authority::new());
    let server = Server::start(|mut visitor| async move {
        if visitor.read_bytes(1).await.is_some() {
            visitor.reset();
        }
    })
    .await;
    assert_eq!(call(server.secure_url("/")).fails_over(&transport).await.0, ErrorType::ConnectionReset);
}

#[tokio::test]
async fn a_certificate_that_proves_nothing_is_a_certificate_error_and_nothing_is_sent() {
    let authority = Authority::new();
    let transport = trusting(&authority);
    for quality in [Quality::SelfSigned, Quality::OtherName, Quality::Expired] {
        let acceptor = authority.acceptor(quality, &["h2", "http/1.1"]);
        let server = Server::start(move |visitor| {
            let acceptor = acceptor.clone();
            async move {
                if let Some(visitor) = visitor.secure(&acceptor).await {
                    behaviours::answer(visitor, behaviours::OK).await;
                }
            }
        })
        .await;
        let (kind, message) = call(server.secure_url("/")).fails_over(&transport).await;
        assert_eq!(kind, ErrorType::TlsCertificate, "{quality:?}: {message}");
        assert!(message.contains(&format!("localhost:{}", server.address().port())), "{message}");
        assert_eq!(server.counts().requests, 0, "{quality:?}");
    }
}

#[tokio::test]
async fn an_authority_that_is_not_trusted_is_a_certificate_error() {
    let transport = trusting(&Authority::new());
    let acceptor = Authority::new().acceptor(Quality::Good, &[]);
    let server = Server::start(move |visitor| {
        let acceptor = acceptor.clone();
        async move { drop(visitor.secure(&acceptor).await) }
    })
    .await;
    assert_eq!(call(server.secure_url("/")).fails_over(&transport).await.0, ErrorType::TlsCertificate);
}

#[tokio::test]
async fn without_any_authority_only_secure_targets_fail_and_say_why() {
    let transport = transport(Options::default());
    let server = Server::start(|visitor| behaviours::answer(visitor, behaviours::OK)).await;
    let (kind, message) = call(server.secure_url("/")).fails_over(&transport).await;
    assert_eq!(kind, ErrorType::TlsCertificate);
    assert!(message.contains("no certificate authority is trusted"), "{message}");
    assert_eq!(server.counts().accepted, 0);
    assert_eq!(call(server.url("/")).over(&transport).await.unwrap().status, 200);
}

#[test]
fn the_systems_roots_can_be_read() {
    assert!(HttpTransport::new(Options::default()).is_ok());
}

#[test]
fn a_file_of_authorities_that_cannot_be_used_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let broken = "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n";
    for (name, content) in
        [("absent.pem", None), ("empty.pem", Some("")), ("text.pem", Some("hello")), ("broken.pem", Some(broken))]
    {
        let path = directory.path().join(name);
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let options = Options { extra_ca: vec![path.clone()], roots: Roots::ExtraOnly, ..Options::default() };
        let error = HttpTransport::new(options).err().unwrap();
        assert!(error.to_string().contains(&*path.to_string_lossy()), "{error}");
    }
}

#[tokio::test]
async fn what_cannot_be_put_on_the_wire_is_an_invalid_request() {
    let transport = transport(Options::default());
    let server = Server::start(|visitor| behaviours::answer(visitor, behaviours::OK)).await;
    for call in [
        call("ftp://secret@127.0.0.1/"),
        call("http://secret@127.0.0.1:port/"),
        call(server.url("/a b?secret")),
        call(server.url("/")).method("GE T"),
        call(server.url("/")).method("CONNECT"),
        call(server.url("/")).header("na\nme", "secret"),
        call(server.url("/")).header("name", "secret\r\nx: y"),
    ] {
        let shown = call.outbound.request.clone();
        assert_eq!(call.fails_over(&transport).await.0, ErrorType::InvalidRequest, "{shown:?}");
    }
    assert_eq!(server.counts().accepted, 0);
}

/// A transport that trusts `authority`.
pub(crate) fn trusting(authority: &Authority) -> HttpTransport {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), authority.pem()).unwrap();
    transport(Options { extra_ca: vec![file.path().to_owned()], ..Options::default() })
}
