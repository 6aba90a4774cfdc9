//! HTTP/2, spoken without TLS so that its bytes can be seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redrive_core::{Answer, ErrorType};
use redrive_engine::transport::Transport;
use redrive_transport::{HttpTransport, Options, PlainProtocol};
use tokio::net::TcpStream;

use crate::call::{SHORT, call, transport};
use crate::support::{Request, Server, Visitor, http2};

fn http2_transport() -> HttpTransport {
    transport(Options { plain: PlainProtocol::Http2, ..Options::default() })
}

/// A server that answers all but `/stall`.
async fn server() -> Server {
    Server::start(|visitor| {
        http2::serve(visitor, |request: Request| async move {
            if request.target == "/stall" {
                std::future::pending::<()>().await;
            }
            http2::ok()
        })
    })
    .await
}

#[tokio::test]
async fn prior_knowledge_needs_no_tls() {
    let server = server().await;
    let transport = http2_transport();
    for _ in 0..10 {
        let call = call(server.url("/")).header("host", "other.test").header("x-a", "1").header("x-a", "2");
        assert_eq!(call.over(&transport).await.unwrap().body.inline().unwrap(), "ok");
    }
    assert_eq!((server.counts().accepted, server.counts().requests), (1, 10));
    let request = &server.requests()[0];
    assert_eq!((request.one(":authority"), request.one("host")), (Some("other.test"), None));
    assert_eq!(request.all("x-a"), ["1", "2"]);
}

#[tokio::test]
async fn an_endless_answer_is_cut_off_and_the_connection_is_used_again() {
    /// A few times what a stream may send unread.
    const FEW_WINDOWS: usize = 16 * Answer::BODY_LIMIT;
    let produced = Arc::new(AtomicUsize::new(0));
    let server = Server::start({
        let produced = produced.clone();
        move |visitor| {
            let produced = produced.clone();
            http2::serve(visitor, move |_| {
                let answer = http2::endless(produced.clone());
                async { answer }
            })
        }
    })
    .await;
    let transport = http2_transport();
    for _ in 0..100 {
        let before = produced.load(Ordering::Relaxed);
        let answer = call(server.url("/")).over(&transport).await.unwrap();
        assert_eq!((answer.body.length(), answer.truncated), (Answer::BODY_LIMIT as u64, true));
        let produced = produced.load(Ordering::Relaxed) - before;
        assert!(produced < FEW_WINDOWS, "{produced}");
    }
    assert_eq!(server.counts().accepted, 1);
}

#[tokio::test]
async fn a_stream_that_stalls_is_a_read_timeout_and_the_next_call_uses_another_connection() {
    let server = server().await;
    let transport = http2_transport();
    assert_eq!(call(server.url("/")).over(&transport).await.unwrap().status, 200);
    let (kind, _) = call(server.url("/stall")).attempt_timeout(SHORT).fails_over(&transport).await;
    assert_eq!(kind, ErrorType::ReadTimeout);
    assert_eq!(call(server.url("/")).over(&transport).await.unwrap().status, 200);
    assert_eq!((server.counts().accepted, server.counts().requests), (2, 3));
    server.wait_for(|counts| counts.open == 1).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_the_connection_to_the_others() {
    let server = server().await;
    let transport = http2_transport();
    let under_way = tokio::spawn(transport.send(call(server.url("/stall")).outbound));
    server.wait_for(|counts| counts.requests == 1).await;
    under_way.abort();
    assert_eq!(call(server.url("/")).over(&transport).await.unwrap().status, 200);
    assert_eq!(server.counts().accepted, 1);
}

#[tokio::test]
async fn an_unused_connection_is_closed_after_its_time() {
    let server = server().await;
    let idle_timeout = Duration::from_millis(50);
    let transport = transport(Options { plain: PlainProtocol::Http2, idle_timeout, ..Options::default() });
    assert_eq!(call(server.url("/")).over(&transport).await.unwrap().status, 200);
    server.wait_for(|counts| counts.open == 0).await;
}

#[tokio::test]
async fn dropping_the_transport_closes_the_connection() {
    let server = server().await;
    let transport = http2_transport();
    assert_eq!(call(server.url("/")).over(&transport).await.unwrap().status, 200);
    drop(transport);
    server.wait_for(|counts| counts.open == 0).await;
}

#[tokio::test]
async fn nothing_is_sent_twice_to_a_server_that_closes_after_each_answer() {
    const CALLS: usize = 100;
    // A server that goes away as soon as it has answered.
    let server = Server::start(|visitor| async move {
        let answered = Arc::new(tokio::sync::Notify::new());
        let serving = http2::serve(visitor, {
            let answered = answered.clone();
            move |_| {
                answered.notify_one();
                async { http2::ok() }
            }
        });
        let gone = async {
            answered.notified().await;
            tokio::task::yield_now().await;
        };
        tokio::select! {
            () = serving => (),
            () = gone => (),
        }
    })
    .await;
    let transport = http2_transport();
    for _ in 0..CALLS {
        if let Err(error) = call(server.url("/")).over(&transport).await {
            assert_eq!(error.kind, ErrorType::ConnectionReset, "{error}");
        }
    }
    let mut keys: Vec<_> =
        server.requests().iter().map(|request| request.one("idempotency-key").unwrap().to_owned()).collect();
    let came = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), came, "a request came twice");
}

/// Answers a client's first stream with these frames, once its request is in.
async fn answer_with(mut visitor: Visitor<TcpStream>, frames: &[u8]) {
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    if visitor.write(SETTINGS).await.is_err() {
        return;
    }
    // The body is the last of a request.
    let mut came = Vec::new();
    while !came.windows(4).any(|window| window == b"body") {
        match visitor.read_bytes(1).await {
            Some(bytes) => came.extend(bytes),
            None => return,
        }
    }
    if visitor.write(frames).await.is_ok() {
        visitor.read_to_end().await;
    }
}

#[tokio::test]
async fn what_ends_a_stream_or_connection_is_told_apart() {
    const NO_ERROR: u8 = 0;
    const PROTOCOL_ERROR: u8 = 1;
    const REFUSED_STREAM: u8 = 7;
    let reset = |reason| [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, reason].to_vec();
    let go_away = |last, reason| [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, last, 0, 0, 0, reason].to_vec();
    for (name, frames, kind) in [
        ("the stream is refused", reset(REFUSED_STREAM), ErrorType::ConnectionReset),
        ("the stream is reset", reset(PROTOCOL_ERROR), ErrorType::ConnectionReset),
        ("the server goes away", go_away(0, NO_ERROR), ErrorType::ConnectionReset),
        ("the server complains", go_away(0, PROTOCOL_ERROR), ErrorType::ConnectionReset),
        ("data before the head", vec![0, 0, 1, 0, 0, 0, 0, 0, 1, b'x'], ErrorType::MalformedAnswer),
        ("a frame on a stream that was not opened", vec![0, 0, 1, 0, 0, 0, 0, 0, 9, b'x'], ErrorType::MalformedAnswer),
        ("another protocol", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), ErrorType::MalformedAnswer),
    ] {
        let server = Server::start(move |visitor| {
            let frames = frames.clone();
            async move { answer_with(visitor, &frames).await }
        })
        .await;
        let (failed, message) = call(server.url("/")).fails_over(&http2_transport()).await;
        assert_eq!(failed, kind, "{name}: {message}");
        assert!(message.contains(&server.address().to_string()), "{message}");
        assert_eq!(server.counts().accepted, 1, "{name}");
    }
}

#[tokio::test]
async fn a_send_for_which_no_stream_is_left_opens_another_connection() {
    const STREAMS: u32 = 2;
    let server = Server::start(|visitor| {
        http2::serve_streams(visitor, STREAMS, |request: Request| async move {
            if request.target == "/stall" {
                std::future::pending::<()>().await;
            }
            http2::ok()
        })
    })
    .await;
    let transport = http2_transport();
    // From the first answer on it is known how many streams there may be.
    assert_eq!(call(server.url("/")).over(&transport).await.unwrap().status, 200);
    let stalled: Vec<_> = (0..2 * STREAMS as usize)
        .map(|_| tokio::spawn(transport.send(call(server.url("/stall")).lane("slow").outbound)))
        .collect();
    server.wait_for(|counts| counts.requests == 1 + stalled.len()).await;
    assert_eq!(server.counts().accepted, 2);
    assert_eq!(call(server.url("/")).lane("healthy").over(&transport).await.unwrap().status, 200);
    assert_eq!(server.counts().accepted, 3);
    stalled.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_stream_that_is_late_costs_the_others_no_connection() {
    let server = server().await;
    let transport = http2_transport();
    let late = call(server.url("/stall")).lane("slow").attempt_timeout(SHORT).fails_over(&transport);
    let others = async {
        server.wait_for(|counts| counts.requests == 1).await;
        assert_eq!(call(server.url("/")).over(&transport).await.unwrap().status, 200);
    };
    let ((kind, _), ()) = tokio::join!(late, others);
    assert_eq!(kind, ErrorType::ReadTimeout);
    assert_eq!(call(server.url("/")).over(&transport).await.unwrap().status, 200);
    assert_eq!(server.counts().accepted, 1);
}

#[tokio::test]
async fn a_large_body_that_the_server_does_not_read_holds_up_no_other_send() {
    let server = Server::start(http2::serve_others).await;
    let transport = http2_transport();
    assert_eq!(call(server.url("/")).over(&transport).await.unwrap().status, 200);
    let large = call(server.url("/unread")).lane("slow").body(vec![0; 16 * 1024 * 1024]);
    let unread = tokio::spawn(transport.send(large.outbound));
    server.wait_for(|counts| counts.requests == 2).await;
    assert_eq!(call(server.url("/")).lane("healthy").over(&transport).await.unwrap().status, 200);
    assert_eq!(server.counts().accepted, 2);
    unread.abort();
}
