//! Who is let in: requests for this server that no page of another site made.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use redrive_server::{Limits, rest};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{Ask, World};

const DOCUMENT: &str = r#"{"targetUrl":"https://example.com/"}"#;

fn submission() -> Ask {
    Ask::post("/retry-tasks", DOCUMENT)
}

async fn named(names: &[&str]) -> World {
    let host_names = names.iter().map(|name| name.parse().unwrap()).collect();
    World::with(Limits::default(), rest::Options { host_names, ..rest::Options::default() }).await
}

/// What the server says to these bytes.
async fn raw(world: &World, request: &str) -> String {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn only_names_of_the_server_are_answered_to() {
    let world = named(&["redrive.internal", "*.example.com"]).await;
    let own = world.address.to_string();
    for host in [&own, "localhost", "a.localhost:1", "127.0.0.1", "[::1]:9", "Redrive.Internal:80", "x.example.com"] {
        assert_eq!(world.ask(submission().header("host", host)).await.status, 201, "{host}");
    }
    let accepted = world.get("/retry-tasks").await.json()["tasks"].as_array().unwrap().len();
    for host in ["evil.example", "evil.example:8620", "localhost.evil.example", "example.com", "192.0.2.1", ""] {
        for ask in [submission(), Ask::get("/retry-tasks"), Ask::get("/docs"), Ask::get("/nothing")] {
            let problem = world.ask(ask.header("host", host)).await.problem(403, "unknown-host");
            assert_eq!(problem["field"], "Host");
            assert!(problem["detail"].as_str().unwrap().contains(&format!("{host:?}")), "{problem}");
        }
    }
    assert_eq!(world.get("/retry-tasks").await.json()["tasks"].as_array().unwrap().len(), accepted);
}

#[tokio::test]
async fn probes_are_answered_by_any_name() {
    let world = World::start().await;
    for path in ["/livez", "/readyz"] {
        let ask = Ask::get(path).header("host", "10-0-0-5.pods.cluster.local").header("origin", "https://evil.example");
        assert_eq!(world.ask(ask).await.status, 200, "{path}");
    }
    let answer = raw(&world, "GET /readyz HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
}

#[tokio::test]
async fn a_request_names_exactly_one_host() {
    let world = World::start().await;
    for (head, told) in [
        ("GET /docs HTTP/1.1\r\nconnection: close\r\n\r\n", "Host must be given"),
        ("GET /docs HTTP/1.0\r\n\r\n", "Host must be given"),
        (
            "GET /docs HTTP/1.1\r\nconnection: close\r\nhost: localhost\r\nhost: localhost\r\n\r\n",
            "Host must be given only once",
        ),
    ] {
        let answer = raw(&world, head).await;
        assert!(answer.contains(" 400 ") && answer.contains(told), "{answer}");
    }
    // Whichever of the two a browser can be made to send, both must be right.
    for (target, host) in [("http://evil.example/docs", "localhost"), ("http://localhost/docs", "evil.example")] {
        let answer = raw(&world, &format!("GET {target} HTTP/1.1\r\nconnection: close\r\nhost: {host}\r\n\r\n")).await;
        assert!(answer.contains("/problems/unknown-host"), "{answer}");
    }
}

#[tokio::test]
async fn the_authority_of_http_2_is_the_host() {
    let world = World::start().await;
    let stream = TcpStream::connect(world.address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    for (authority, host, status) in [
        ("localhost:8620", None, 201),
        ("localhost", Some("localhost"), 201),
        ("evil.example", None, 403),
        ("evil.example", Some("localhost"), 403),
        ("localhost", Some("evil.example"), 403),
    ] {
        let mut request = Request::post(format!("http://{authority}/retry-tasks"));
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let body = Full::new(Bytes::from_static(DOCUMENT.as_bytes()));
        let request = request.header("content-type", "application/json").body(body).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), status, "{authority} {host:?}");
        response.into_body().collect().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_on_all_addresses_answers_to_any_address() {
    let world = World::listening_on("0.0.0.0:0").await;
    for (host, status) in [("203.0.113.7:8620", 201), ("[2001:db8::1]", 201), ("localhost", 201), ("evil.example", 403)]
    {
        assert_eq!(world.ask(submission().header("host", host)).await.status, status, "{host}");
    }
    // An address is not the server's own for that: a page may come from any.
    for (origin, status) in [("http://203.0.113.7:3000", 201), ("http://198.51.100.1", 403)] {
        let ask = submission().header("host", "203.0.113.7:8620").header("origin", origin);
        assert_eq!(world.ask(ask).await.status, status, "{origin}");
    }
}

#[tokio::test]
async fn a_page_of_a_foreign_origin_is_refused() {
    let world = named(&["redrive.internal"]).await;
    for origin in [
        "https://evil.example",
        "http://evil.example:8620",
        "null",
        "",
        "file://",
        "chrome-extension://localhost",
        "http://user@localhost",
        "http://localhost.evil.example",
        "http://localhost http://evil.example",
    ] {
        for ask in [
            submission(),
            submission().without("content-type"),
            Ask::bytes("POST", "/blobs", b"x"),
            Ask::new("POST", "/retry-tasks/018bcfe5-6800-7f57-a123-456789abcdef/replay"),
            Ask::new("DELETE", "/retry-policies/webhooks"),
            Ask::get("/retry-tasks"),
        ] {
            let problem = world.ask(ask.header("origin", origin)).await.problem(403, "cross-site");
            assert_eq!(problem["field"], "Origin", "{origin:?}");
        }
    }
    for origin in ["http://localhost:8620", "https://redrive.internal", "http://127.0.0.1", "http://[::1]:3000"] {
        assert_eq!(world.ask(submission().header("origin", origin)).await.status, 201, "{origin}");
    }
}

#[tokio::test]
async fn a_server_that_answers_to_any_name_still_refuses_other_sites() {
    let world = named(&["*"]).await;
    let ask = || submission().header("host", "redrive.example");
    assert_eq!(world.ask(ask()).await.status, 201);
    assert_eq!(world.ask(ask().header("origin", "https://redrive.example")).await.status, 201);
    world.ask(ask().header("origin", "https://evil.example")).await.problem(403, "cross-site");
}

#[tokio::test]
async fn a_transfer_encoding_that_is_not_understood_is_refused() {
    let world = World::start().await;
    for codings in ["gzip, chunked", "chunked, chunked", "identity, chunked", "gzip\r\ntransfer-encoding: chunked"] {
        let answer = raw(
            &world,
            &format!(
                "POST /retry-tasks HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
                 transfer-encoding: {codings}\r\n\r\n24\r\n{DOCUMENT}\r\n0\r\n\r\n"
            ),
        )
        .await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{codings}: {answer}");
        assert!(answer.contains(r#""field":"Transfer-Encoding""#), "{codings}: {answer}");
    }
    assert_eq!(world.ask(submission().header("transfer-encoding", "Chunked")).await.status, 201);
    assert_eq!(world.target.sends(1).await.len(), 1);
}

#[test]
fn the_document_says_who_is_refused() {
    let document = rest::openapi_document();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let types = |status: &str| operation["responses"][status]["x-problem-types"].clone();
            let expected = match path.as_str() {
                "/livez" | "/readyz" => Value::Null,
                _ => serde_json::json!(["/problems/cross-site", "/problems/unknown-host"]),
            };
            assert_eq!(types("403"), expected, "{method} {path}");
            let takes_json = operation["requestBody"]["content"]["application/json"].is_object();
            assert_eq!(types("415").is_array(), takes_json, "{method} {path}");
        }
    }
}
