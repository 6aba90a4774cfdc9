//! What is made of an answer.

use redrive_core::Answer;
use redrive_transport::Options;

use crate::call::{SHORT, call, transport};
use crate::support::{Server, behaviours};

async fn answer_to(answer: impl AsRef<[u8]> + Clone + Send + Sync + 'static) -> Answer {
    let server = Server::start(move |visitor| behaviours::answer_and_close(visitor, answer.clone())).await;
    call(server.url("/")).over(&transport(Options::default())).await.unwrap()
}

#[tokio::test]
async fn status_headers_and_body_are_as_received() {
    let answer = answer_to(
        "HTTP/1.1 418 Teapot\r\nX-A: 1\r\nx-b: 2\r\nx-a: 3\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nraw",
    )
    .await;
    assert_eq!(answer.status, 418);
    assert_eq!(answer.body.inline().unwrap(), "raw");
    assert!(!answer.truncated);
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    let of_a: Vec<_> = answer.headers.iter().filter(|(name, _)| name == "x-a").map(|(_, value)| value).collect();
    assert_eq!(of_a, ["1", "3"]);
}

#[tokio::test]
async fn every_way_to_end_a_body_is_understood() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nbo\r\n2;x=y\r\ndy\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\ntrailer: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nbody",
        "HTTP/1.0 200 OK\r\n\r\nbody",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody",
    ] {
        let received = answer_to(answer).await;
        assert_eq!(
            (received.status, &received.body.inline().unwrap()[..], received.truncated),
            (200, &b"body"[..], false),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn answers_without_a_body_are_whole() {
    for (method, answer, status) in [
        ("POST", "HTTP/1.1 204 No Content\r\n\r\n", 204),
        ("GET", "HTTP/1.1 304 Not Modified\r\ncontent-length: 10\r\n\r\n", 304),
        ("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n", 200),
        ("POST", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200),
        ("GET", "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", 101),
    ] {
        let server = Server::start(move |visitor| behaviours::answer(visitor, answer)).await;
        let received = call(server.url("/")).method(method).over(&transport(Options::default())).await.unwrap();
        assert_eq!((received.status, received.body.length(), received.truncated), (status, 0, false), "{answer:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let answer = format!("HTTP/1.1 {status} Moved\r\nlocation: /again\r\ncontent-length: 0\r\n\r\n");
        let server = Server::start(move |visitor| behaviours::answer(visitor, answer.clone())).await;
        let received = call(server.url("/")).over(&transport(Options::default())).await.unwrap();
        assert_eq!((received.status, received.header("location")), (status, Some("/again")));
        assert_eq!(server.counts().requests, 1);
    }
}

#[tokio::test]
async fn a_body_of_just_the_limit_is_not_truncated() {
    for length in [0, 1, Answer::BODY_LIMIT - 1, Answer::BODY_LIMIT] {
        let body = "x".repeat(length);
        let sized = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
        let until_the_end = format!("HTTP/1.1 200 OK\r\n\r\n{body}");
        for answer in [sized, until_the_end, chunked(&body)] {
            let received = answer_to(answer).await;
            assert_eq!(received.body.inline().unwrap(), body.as_str());
            assert!(!received.truncated, "{length}");
        }
    }
}

#[tokio::test]
async fn one_byte_above_the_limit_is_truncated() {
    let body = "x".repeat(Answer::BODY_LIMIT + 1);
    let sized = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    for answer in [sized, format!("HTTP/1.1 200 OK\r\n\r\n{body}"), chunked(&body)] {
        let received = answer_to(answer).await;
        assert_eq!(received.body.inline().unwrap(), &body[..Answer::BODY_LIMIT]);
        assert!(received.truncated);
    }
}

/// `body` in chunks, none of which ends where the limit is.
fn chunked(body: &str) -> String {
    let mut answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
    for chunk in body.as_bytes().chunks(5_000) {
        answer += &format!("{:x}\r\n{}\r\n", chunk.len(), str::from_utf8(chunk).unwrap());
    }
    answer + "0\r\n\r\n"
}

#[tokio::test]
async fn once_the_limit_is_read_nothing_can_spoil_the_answer() {
    let body = "x".repeat(Answer::BODY_LIMIT);
    // The length says that there is more to come: that is enough to know.
    let sized = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len() + 1);
    // Here more may come or not, and then comes an end in the wrong place, or nothing for as long as there is time.
    let cut_off = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n", body.len());
    let stalled = Server::start({
        let answer = cut_off.clone();
        move |visitor| behaviours::answer(visitor, answer.clone())
    })
    .await;
    let stalled = call(stalled.url("/")).attempt_timeout(SHORT).over(&transport(Options::default())).await.unwrap();
    for received in [answer_to(sized).await, answer_to(cut_off).await, stalled] {
        assert_eq!(received.body.inline().unwrap(), body.as_str());
        assert!(received.truncated);
    }
}

#[tokio::test]
async fn ten_gigabytes_cost_no_more_than_the_buffers() {
    /// More than the buffers of two sockets hold, and far less than ten gigabytes.
    const BUFFERS: u64 = 64 * 1024 * 1024;

    let sized = Server::start(behaviours::flood_sized).await;
    let chunked = Server::start(behaviours::flood_chunked).await;
    let transport = transport(Options::default());
    for server in [sized, chunked] {
        let received = call(server.url("/")).over(&transport).await.unwrap();
        assert_eq!((received.status, received.body.length()), (200, Answer::BODY_LIMIT as u64));
        assert!(received.truncated);
        let counts = server.wait_for(|counts| counts.open == 0).await;
        assert!(counts.written < BUFFERS, "{counts:?}");
    }
}
