//! Targets with TLS whose certificate is good.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use redrive_transport::HttpTransport;

use crate::call::{SHORT, call};
use crate::connecting::trusting;
use crate::support::behaviours::OK;
use crate::support::tls::{Authority, Quality};
use crate::support::{Server, behaviours, http2};

/// A server with a good certificate that offers these protocols, and a transport that trusts it.
async fn secure_server(protocols: &'static [&'static str]) -> (Server, HttpTransport) {
    let authority = Authority::new();
    let transport = trusting(&authority);
    let acceptor = authority.acceptor(Quality::Good, protocols);
    let server = Server::start(move |visitor| {
        let acceptor = acceptor.clone();
        async move {
            let Some(visitor) = visitor.secure(&acceptor).await else { return };
            if protocols.first() == Some(&"h2") {
                http2::serve(visitor, |_| async { http2::ok() }).await;
            } else {
                behaviours::answer(visitor, OK).await;
            }
        }
    })
    .await;
    (server, transport)
}

#[tokio::test]
async fn http1_is_spoken_where_http2_is_not_offered() {
    for protocols in [&[][..], &["http/1.1"]] {
        let (server, transport) = secure_server(protocols).await;
        for _ in 0..5 {
            assert_eq!(call(server.secure_url("/")).over(&transport).await.unwrap().body.inline().unwrap(), "ok");
        }
        assert_eq!((server.counts().accepted, server.counts().requests), (1, 5));
        let host = format!("localhost:{}", server.address().port());
        assert_eq!(server.requests()[0].one("host"), Some(host.as_str()));
    }
}

#[tokio::test]
async fn many_calls_at_once_over_http1_each_get_a_connection() {
    const CALLS: usize = 20;
    let (server, transport) = secure_server(&["http/1.1"]).await;
    let answers = join_all((0..CALLS).map(|_| call(server.secure_url("/")).over(&transport))).await;
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap().status == 200));
    assert_eq!(server.counts().requests, CALLS);
}

#[tokio::test]
async fn http2_is_spoken_where_it_is_offered_and_many_calls_share_a_connection() {
    // As many as a peer is expected to allow before it has said how many it does.
    const CALLS: usize = 100;
    let (server, transport) = secure_server(&["h2", "http/1.1"]).await;
    let answers = join_all((0..CALLS).map(|_| call(server.secure_url("/p?q")).over(&transport))).await;
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap().body.inline().unwrap() == "ok"));
    assert_eq!((server.counts().accepted, server.counts().requests), (1, CALLS));
    let request = &server.requests()[0];
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/p?q"));
    assert_eq!(request.body, b"body");
    let authority = format!("localhost:{}", server.address().port());
    assert_eq!((request.one(":authority"), request.one("host")), (Some(authority.as_str()), None));
    assert_eq!((request.one("content-length"), request.one("redrive-attempt")), (Some("4"), Some("1")));
    assert!(request.one("idempotency-key").is_some() && request.one("redrive-task-id").is_some());
}

#[tokio::test]
async fn a_failed_connection_fails_every_call_that_waits_for_it() {
    let authority = Authority::new();
    let transport = trusting(&authority);
    let acceptor = authority.acceptor(Quality::Expired, &["h2"]);
    let server = Server::start(move |visitor| {
        let acceptor = acceptor.clone();
        async move { drop(visitor.secure(&acceptor).await) }
    })
    .await;
    let answers = join_all((0..20).map(|_| call(server.secure_url("/")).over(&transport))).await;
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap_err().kind == redrive_core::ErrorType::TlsCertificate));
    assert_eq!(server.counts().accepted, 1);
    // A later call looks for itself.
    call(server.secure_url("/")).fails_over(&transport).await;
    assert_eq!(server.counts().accepted, 2);
}

#[tokio::test]
async fn a_call_with_more_time_does_not_fail_with_one_that_had_less() {
    let authority = Authority::new();
    let transport = trusting(&authority);
    let acceptor = authority.acceptor(Quality::Good, &["h2"]);
    // The first connection gets nowhere.
    let first = AtomicBool::new(true);
    let server = Server::start(move |visitor| {
        let (first, acceptor) = (first.swap(false, Ordering::SeqCst), acceptor.clone());
        async move {
            if first {
                behaviours::ignore(visitor).await;
            } else if let Some(visitor) = visitor.secure(&acceptor).await {
                http2::serve(visitor, |_| async { http2::ok() }).await;
            }
        }
    })
    .await;
    let less = call(server.secure_url("/")).connect_timeout(SHORT).fails_over(&transport);
    let more = async {
        server.wait_for(|counts| counts.accepted == 1).await;
        call(server.secure_url("/")).over(&transport).await
    };
    let ((kind, _), more) = tokio::join!(less, more);
    assert_eq!(kind, redrive_core::ErrorType::TlsHandshakeTimeout);
    assert_eq!(more.unwrap().status, 200);
    assert_eq!(server.counts().accepted, 2);
}

#[tokio::test]
async fn a_dropped_call_leaves_the_opening_to_those_who_wait_for_it() {
    let authority = Authority::new();
    let transport = trusting(&authority);
    let acceptor = authority.acceptor(Quality::Good, &["h2"]);
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let server = Server::start({
        let gate = gate.clone();
        move |visitor| {
            let (acceptor, gate) = (acceptor.clone(), gate.clone());
            async move {
                let passed = gate.acquire().await.unwrap();
                let Some(visitor) = visitor.secure(&acceptor).await else { return };
                http2::serve(visitor, |_| async { http2::ok() }).await;
                drop(passed);
            }
        }
    })
    .await;
    let transport = std::sync::Arc::new(transport);
    let mut calls = Vec::new();
    for _ in 0..3 {
        let (call, transport) = (call(server.secure_url("/")), transport.clone());
        calls.push(tokio::spawn(async move { call.over(&transport).await }));
        server.wait_for(|counts| counts.accepted == 1).await;
    }
    calls.remove(0).abort();
    server.wait_for(|counts| counts.accepted == 2).await;
    gate.add_permits(10);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status, 200);
    }
    assert_eq!((server.counts().accepted, server.counts().requests), (2, 2));
}
