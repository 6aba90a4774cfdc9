//! Answers that never become whole, and things that are no answers.

use futures_util::future::join_all;
use redrive_core::ErrorType;
use redrive_transport::Options;
use tokio::net::TcpStream;

use crate::call::{SHORT, call, transport};
use crate::support::{Server, Visitor, behaviours};

/// Makes one call of a server that behaves like this. Whatever happens, it must be called no more than once.
async fn failure_of<B, F>(behaviour: B) -> ErrorType
where
    B: Fn(Visitor<TcpStream>) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let server = Server::start(behaviour).await;
    let (kind, message) = call(server.url("/?secret")).fails_over(&transport(Options::default())).await;
    assert!(message.contains(&server.address().to_string()), "{message}");
    let counts = server.wait_for(|counts| counts.accepted == 1 && counts.open == 0).await;
    assert!(counts.requests <= 1, "{counts:?}");
    kind
}

#[tokio::test]
async fn a_reset_at_any_point_is_a_reset_connection() {
    assert_eq!(failure_of(behaviours::reset_at_once).await, ErrorType::ConnectionReset);
    assert_eq!(failure_of(behaviours::reset_after_head).await, ErrorType::ConnectionReset);
    assert_eq!(failure_of(behaviours::reset_after_request).await, ErrorType::ConnectionReset);
    for beginning in [
        "HTTP/1.1 2",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\nhalf",
        "HTTP/1.1 200 OK\r\n\r\nuntil the end",
    ] {
        let kind = failure_of(move |visitor| behaviours::reset_after_answering(visitor, beginning)).await;
        assert_eq!(kind, ErrorType::ConnectionReset, "{beginning:?}");
    }
}

#[tokio::test]
async fn an_end_before_the_answer_is_whole_is_a_reset_connection() {
    for beginning in [
        "",
        "HTTP/1.1 2",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n",
    ] {
        let kind = failure_of(move |visitor| behaviours::answer_and_close(visitor, beginning)).await;
        assert_eq!(kind, ErrorType::ConnectionReset, "{beginning:?}");
    }
}

#[tokio::test]
async fn informational_answers_without_end_are_a_malformed_answer() {
    let kind = failure_of(|mut visitor: Visitor<TcpStream>| async move {
        visitor.read_request().await;
        let many = "HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000);
        while visitor.write(many.as_bytes()).await.is_ok() {}
    })
    .await;
    assert_eq!(kind, ErrorType::MalformedAnswer);
}

#[tokio::test]
async fn what_is_not_http_is_a_malformed_answer() {
    for answer in [
        "\u{0}\u{1}\u{2}\u{3}garbage\r\n\r\n",
        "220 mail.example.test ESMTP\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1 99 Too Small\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: ten\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnot hex\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nokXX",
    ] {
        let kind = failure_of(move |visitor| behaviours::answer(visitor, answer)).await;
        assert_eq!(kind, ErrorType::MalformedAnswer, "{answer:?}");
    }
}

#[tokio::test]
async fn a_banner_before_the_request_is_a_malformed_answer() {
    let banner = "220 mail.example.test ESMTP\r\n";
    assert_eq!(failure_of(move |visitor| behaviours::say_first(visitor, banner)).await, ErrorType::MalformedAnswer);
}

#[tokio::test]
async fn a_head_that_is_too_large_is_a_malformed_answer() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(1_000_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(10_000));
    for answer in [long, many] {
        let kind = failure_of(move |visitor| behaviours::answer(visitor, answer.clone())).await;
        assert_eq!(kind, ErrorType::MalformedAnswer);
    }
}

#[tokio::test]
async fn no_answer_in_time_is_a_read_timeout() {
    let slow = [Slow::Stalls, Slow::Ignores, Slow::TricklesHead, Slow::TricklesBody, Slow::StopsInBody];
    join_all(slow.map(async |behaviour| {
        let server = Server::start(move |visitor| behaviour.with(visitor)).await;
        let call = call(server.url("/?secret")).attempt_timeout(SHORT);
        let (kind, message) = call.fails_over(&transport(Options::default())).await;
        assert_eq!(kind, ErrorType::ReadTimeout, "{behaviour:?}");
        assert!(message.contains(&server.address().to_string()), "{message}");
    }))
    .await;
}

#[derive(Debug, Clone, Copy)]
enum Slow {
    Stalls,
    Ignores,
    TricklesHead,
    TricklesBody,
    StopsInBody,
}

impl Slow {
    async fn with(self, visitor: Visitor<TcpStream>) {
        match self {
            Slow::Stalls => behaviours::stall(visitor).await,
            Slow::Ignores => behaviours::ignore(visitor).await,
            Slow::TricklesHead => behaviours::trickle(visitor, "HTTP/1.1 200 OK\r\nx: ").await,
            Slow::TricklesBody => {
                behaviours::trickle(visitor, "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n").await;
            }
            Slow::StopsInBody => {
                behaviours::answer(visitor, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await;
            }
        }
    }
}

#[tokio::test]
async fn a_large_request_that_the_peer_does_not_read_is_a_read_timeout() {
    let server = Server::start(behaviours::ignore).await;
    let call = call(server.url("/")).body(vec![0; 64 * 1024 * 1024]).attempt_timeout(SHORT);
    assert_eq!(call.fails_over(&transport(Options::default())).await.0, ErrorType::ReadTimeout);
}
