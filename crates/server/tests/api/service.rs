//! How the service is, and how HTTP is spoken.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use redrive_server::{Limits, rest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{Ask, Connection, World};

#[tokio::test]
async fn it_lives_and_is_ready_until_it_stops() {
    let world = World::start().await;
    for path in ["/livez", "/readyz", "/livez?probe=1"] {
        let answer = world.get(path).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"status":"ok"}"#), "{path}");
    }
    world.engine.drain();
    assert_eq!(world.get("/livez").await.status, 200);
    let answer = world.get("/readyz").await;
    assert!(answer.problem(503, "unavailable")["detail"].as_str().unwrap().contains("stopping"));
    assert_eq!(answer.header("retry-after"), Some("1"));

    world.engine.store().close().await;
    let answer = world.get("/retry-tasks").await;
    answer.problem(503, "unavailable");
    assert_eq!(answer.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn unknown_paths_are_404_and_unknown_methods_405() {
    let world = World::start().await;
    for path in ["/nothing", "/retry-tasks/", "/retry-tasks//", "/RETRY-TASKS", "/retry-policies/a/b", "//"] {
        world.get(path).await.problem(404, "not-found");
    }
    for (method, path, allow) in [
        ("PUT", "/retry-tasks", "POST, GET, HEAD"),
        ("POST", "/livez", "GET, HEAD"),
        ("GET", "/retry-tasks/x/retry-now", "POST"),
        ("GET", "/retry-tasks/x/replay", "POST"),
        ("OPTIONS", "/retry-policies", "POST, GET, HEAD"),
    ] {
        let answer = world.ask(Ask::new(method, path)).await;
        answer.problem(405, "method-not-allowed");
        assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
    }
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let world = World::start().await;
    for path in ["/livez", "/retry-policies/default", "/docs", "/retry-tasks/x"] {
        let get = world.get(path).await;
        let head = world.ask(Ask::new("HEAD", path)).await;
        assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
        for name in ["content-type", "content-length", "etag"] {
            assert_eq!(head.header(name), get.header(name), "{path} {name}");
        }
    }
}

#[tokio::test]
async fn a_connection_is_kept_for_many_requests() {
    let world = World::start().await;
    let mut connection = Connection::open(world.address).await;
    for _ in 0..100 {
        let answer = connection.ask(Ask::post("/retry-tasks", r#"{"targetUrl":"https://example.com/"}"#)).await;
        assert_eq!(answer.status, 201);
        connection.ask(Ask::post("/retry-tasks", "{")).await.problem(400, "malformed-json");
    }
}

#[tokio::test]
async fn a_panic_is_answered_and_the_connection_goes_on() {
    let world = World::start().await;
    let mut connection = Connection::open(world.address).await;
    let ask = Ask::post("/retry-tasks", r#"{"targetUrl":"https://example.com/"}"#);
    world.entropy.panic_next();
    let problem = connection.ask(ask.clone()).await.problem(500, "internal-error");
    assert!(!problem.to_string().contains("the test asked"), "{problem}");
    assert_eq!(connection.ask(ask).await.status, 201);
}

#[tokio::test]
async fn http_2_is_spoken_with_prior_knowledge() {
    let world = World::start().await;
    let stream = TcpStream::connect(world.address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    let uri = |path: &str| format!("http://redrive.localhost{path}");
    let request = |method: &str, path: &str, body: &'static str| {
        Request::builder()
            .method(method)
            .uri(uri(path))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from_static(body.as_bytes())))
            .unwrap()
    };
    for (method, path, body, status) in [
        ("POST", "/retry-tasks", r#"{"targetUrl":"https://example.com/"}"#, 201),
        ("POST", "/retry-tasks", "{", 400),
        ("GET", "/docs", "", 200),
        ("HEAD", "/docs", "", 200),
    ] {
        let response = sender.send_request(request(method, path, body)).await.unwrap();
        assert_eq!(response.status(), status, "{method} {path}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body.is_empty(), method == "HEAD", "{method} {path}");
        if (method, path) == ("GET", "/docs") {
            assert!(String::from_utf8_lossy(&body).contains("http://redrive.localhost/retry-tasks"));
        }
    }
    let limit = vec![b' '; 7 * 1024 * 1024];
    let huge = Request::post(uri("/retry-tasks"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(limit)))
        .unwrap();
    assert_eq!(sender.send_request(huge).await.unwrap().status(), 413);
    assert_eq!(sender.send_request(request("GET", "/livez", "")).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_caller_that_says_nothing_loses_its_place() {
    let options = rest::Options {
        max_connections: 1,
        header_read_timeout: Duration::from_millis(250),
        ..rest::Options::default()
    };
    let world = World::with(Limits::default(), options).await;
    for said in ["", "P", "POST /retry-tasks HTTP/1.1\r\nhost", "PRI * HTTP/2.0\r\n"] {
        let mut silent = TcpStream::connect(world.address).await.unwrap();
        silent.write_all(said.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        // Whether it is closed or reset does not matter.
        silent.read_to_end(&mut rest).await.unwrap_or_default();
        assert_eq!(world.get("/livez").await.status, 200, "{said:?}");
    }
}
