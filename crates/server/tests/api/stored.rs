//! Bodies that are uploaded first, or too large to be kept with their task.

use std::time::Duration;

use redrive_core::{Answer, Body, BodyHash, TenantId};
use redrive_server::{Limits, rest};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{Ask, Plan, World, answer};

const LARGE: usize = 200_000;

fn large() -> Vec<u8> {
    (0..LARGE).map(|n| (n % 251) as u8).collect()
}

async fn upload(world: &World, bytes: &[u8]) -> String {
    let answer = world.ask(Ask::bytes("POST", "/blobs", bytes)).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let stored = answer.json();
    assert_eq!(stored, json!({ "bodyRef": BodyHash::of(bytes).to_string(), "bytes": bytes.len() }));
    stored["bodyRef"].as_str().unwrap().to_owned()
}

fn submission(key: &str, body_ref: &str) -> String {
    json!({ "targetUrl": "https://example.com/", "idempotencyKey": key, "bodyRef": body_ref }).to_string()
}

#[tokio::test]
async fn an_uploaded_body_is_sent_by_every_task_that_refers_to_it() {
    let world = World::start().await;
    let body_ref = upload(&world, &large()).await;
    for key in ["a", "b"] {
        let id = world.submit(&submission(key, &body_ref)).await;
        let task = world.ended(&id).await;
        assert_eq!((&task["bodyRef"], task["bodyBytes"].as_u64()), (&json!(body_ref), Some(LARGE as u64)));
        assert_eq!(task["headers"], json!({}), "nothing says what it is");
    }
    for sent in world.target.sends(2).await {
        let body = sent.request.body.stored().unwrap();
        assert_eq!((body.hash, body.length), (BodyHash::of(&large()), LARGE as u64));
    }
}

#[tokio::test]
async fn a_stored_body_can_be_read_back() {
    let world = World::start().await;
    for bytes in [large(), vec![0]] {
        let path = format!("/blobs/{}", upload(&world, &bytes).await);
        let read = world.get(&path).await;
        assert_eq!((read.status, read.header("content-type")), (200, Some("application/octet-stream")));
        assert_eq!(read.header("content-length"), Some(bytes.len().to_string().as_str()));
        assert!(read.body == bytes);
        let head = world.ask(Ask::new("HEAD", &path)).await;
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(head.header("content-length"), Some(bytes.len().to_string().as_str()));
    }
    for nothing in [BodyHash::of(b"never uploaded").to_string(), "x".into()] {
        world.get(&format!("/blobs/{nothing}")).await.problem(404, "body-not-found");
    }
}

#[tokio::test]
async fn an_upload_without_a_body_is_refused() {
    let world = World::start().await;
    let empty = || Ask::bytes("POST", "/blobs", b"");
    for ask in [empty(), empty().chunked()] {
        let problem = world.ask(ask).await.problem(400, "invalid-parameter");
        assert_eq!(problem["field"], "body");
    }
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(b"POST /blobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains(r#""field":"body""#), "{answer}");
    world.get(&format!("/blobs/{}", BodyHash::of(b""))).await.problem(404, "body-not-found");
}

#[tokio::test]
async fn a_reference_to_nothing_is_422_and_says_so() {
    let world = World::start().await;
    let unknown = BodyHash::of(b"never uploaded").to_string();
    let problem = world.post("/retry-tasks", &submission("k", &unknown)).await.problem(422, "unknown-body");
    assert_eq!(problem["field"], "bodyRef");
    assert!(problem["detail"].as_str().unwrap().contains(&unknown));
    let problem = world.post("/retry-tasks", &submission("k", "sha256:abc")).await.problem(422, "invalid-value");
    assert_eq!(problem["field"], "bodyRef");
    let two = json!({ "targetUrl": "https://example.com/", "bodyRef": unknown, "body": "x" }).to_string();
    let problem = world.post("/retry-tasks", &two).await.problem(422, "invalid-value");
    let fields: Vec<_> = problem["errors"].as_array().unwrap().iter().map(|error| error["field"].clone()).collect();
    assert_eq!(fields, ["body", "bodyRef"]);

    let known = upload(&world, b"body").await;
    let batch = format!("{{\"tasks\":[{},{}]}}", submission("a", &known), submission("b", &unknown));
    let results = world.post("/retry-tasks/batch", &batch).await.json()["results"].clone();
    assert_eq!((results[0]["status"].as_u64(), results[1]["status"].as_u64()), (Some(201), Some(422)));
    assert_eq!(results[1]["error"]["field"], "tasks[1].bodyRef");
}

#[tokio::test]
async fn the_same_key_is_the_same_task_if_the_body_came_the_same_way() {
    let world = World::start().await;
    let body_ref = upload(&world, b"body").await;
    let id = world.submit(&submission("k", &body_ref)).await;
    let again = world.post("/retry-tasks", &submission("k", &body_ref)).await;
    assert_eq!((again.status, again.json()["taskId"].as_str()), (200, Some(id.as_str())));
    let other = upload(&world, b"other").await;
    world.post("/retry-tasks", &submission("k", &other)).await.problem(422, "idempotency-key-reused");
    let inline = json!({ "targetUrl": "https://example.com/", "idempotencyKey": "k", "bodyBase64": "Ym9keQ==" });
    world.post("/retry-tasks", &inline.to_string()).await.problem(422, "idempotency-key-reused");
}

#[tokio::test]
async fn a_large_body_of_a_document_is_stored_apart_and_is_the_same_request_again() {
    let limits = Limits { inline_body_bytes: 1_000, ..Limits::default() };
    let world = World::with(limits, rest::Options::default()).await;
    let document = |length: usize| {
        json!({ "targetUrl": "https://example.com/", "idempotencyKey": length.to_string(), "body": "x".repeat(length) })
            .to_string()
    };
    let small = world.post("/retry-tasks", &document(1_000)).await.json();
    assert_eq!((small["bodyBytes"].as_u64(), small.get("bodyRef")), (Some(1_000), None));
    let large = world.post("/retry-tasks", &document(1_001)).await.json();
    let expected = BodyHash::of("x".repeat(1_001).as_bytes());
    assert_eq!((large["bodyBytes"].as_u64(), &large["bodyRef"]), (Some(1_001), &json!(expected.to_string())));
    assert_eq!(large["headers"]["content-type"], "text/plain; charset=utf-8");
    let again = world.post("/retry-tasks", &document(1_001)).await;
    assert_eq!((again.status, &again.json()["taskId"]), (200, &large["taskId"]));
    let sends = world.target.sends(2).await;
    assert_eq!(sends[0].request.body, Body::from("x".repeat(1_000)));
    assert_eq!(sends[1].request.body.stored().unwrap().hash, expected);
}

#[tokio::test]
async fn an_upload_over_its_limit_is_413_and_stores_nothing() {
    let limits = Limits { stored_body_bytes: 1_000, ..Limits::default() };
    let world = World::with(limits, rest::Options::default()).await;
    upload(&world, &[7; 1_000]).await;
    let announced = world.ask(Ask::bytes("POST", "/blobs", &[7; 1_001])).await;
    assert_eq!(announced.problem(413, "content-too-large")["limitBytes"], 1_000);
    let chunked = world.ask(Ask::bytes("POST", "/blobs", &[7; 1_001]).chunked()).await;
    assert_eq!(chunked.problem(413, "content-too-large")["limitBytes"], 1_000);
    world.get(&format!("/blobs/{}", BodyHash::of(&[7; 1_001]))).await.problem(404, "body-not-found");
}

/// Far more than the buffers between a caller and the server hold.
const REFUSED: usize = 9 * 1024 * 1024;

#[tokio::test]
async fn a_caller_that_sends_too_much_hears_that_it_was_refused() {
    let limits = Limits { stored_body_bytes: 8 * 1024 * 1024, ..Limits::default() };
    let world = World::with(limits, rest::Options::default()).await;
    let announced = format!("content-length: {REFUSED}\r\n\r\n");
    let chunked = format!("transfer-encoding: chunked\r\n\r\n{REFUSED:x}\r\n");
    for (path, head, status) in [("/blobs", &announced, 413), ("/blobs", &chunked, 413), ("/nothing", &announced, 404)]
    {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{head}");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&vec![7; REFUSED]).await.unwrap();
        stream.write_all(b"\r\n0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head}{answer}");
    }
}

#[tokio::test]
async fn what_is_refused_is_not_read_for_ever() {
    let limits = Limits { stored_body_bytes: 1_000, ..Limits::default() };
    let world = World::with(limits, rest::Options::default()).await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let head = "POST /blobs HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    // Four gibibytes were announced: the connection ends long before.
    let mut sent = 0_usize;
    while stream.write_all(&[7; 64 * 1024]).await.is_ok() {
        sent += 64 * 1024;
        assert!(sent < 1024 * 1024 * 1024, "still taken after {sent} bytes");
    }
}

#[tokio::test]
async fn without_a_place_for_them_stored_bodies_are_501_for_good() {
    let world = World::without_bodies().await;
    for ask in [Ask::bytes("POST", "/blobs", &large()), Ask::get(&format!("/blobs/{}", BodyHash::of(b"x")))] {
        let answer = world.ask(ask).await;
        let problem = answer.problem(501, "no-body-storage");
        assert!(problem["detail"].as_str().unwrap().contains("--blobs"), "{problem:#}");
        assert_eq!(answer.header("retry-after"), None);
    }
}

#[tokio::test]
async fn an_upload_that_breaks_off_stores_nothing() {
    let world = World::start().await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(b"POST /blobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nhalf ").await.unwrap();
    drop(stream);
    for bytes in [&b"half "[..], b"half"] {
        world.get(&format!("/blobs/{}", BodyHash::of(bytes))).await.problem(404, "body-not-found");
    }
}

#[tokio::test]
async fn an_upload_that_stands_still_is_ended() {
    let options = rest::Options { body_read_timeout: Duration::from_millis(20), ..rest::Options::default() };
    let world = World::with(Limits::default(), options).await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(b"POST /blobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nhalf ").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("/problems/broken-body"), "{answer}");
}

#[tokio::test]
async fn a_large_answer_is_shown_by_its_reference() {
    let world = World::start().await;
    let body_ref = upload(&world, &large()).await;
    let stored = world.engine.bodies().unwrap().find(&TenantId::default_tenant(), BodyHash::of(&large())).await;
    let body = stored.unwrap().unwrap().into();
    world.target.plan(Plan::Answer(Answer { body, ..answer(200, "") }));
    let id = world.submit(r#"{"targetUrl":"https://example.com/"}"#).await;
    let expected = json!({ "status": 200, "headers": {}, "bodyRef": body_ref, "bodyBytes": LARGE, "truncated": false });
    assert_eq!(world.ended(&id).await["response"], expected);
}

#[tokio::test]
async fn a_body_that_no_task_refers_to_is_deleted_after_its_grace() {
    let world = World::start().await;
    let (used, unused) = (upload(&world, b"used").await, upload(&world, b"unused").await);
    world.submit(&submission("k", &used)).await;
    let clean_every = redrive_engine::Options::default().clean_every;
    for _ in 0..2 {
        world.clock.until_a_sleep_of(clean_every).await;
        world.clock.advance(Duration::from_secs(13 * 3_600));
    }
    let path = format!("/blobs/{unused}");
    for _ in 0..100_000 {
        if world.get(&path).await.status == 404 {
            break;
        }
    }
    world.get(&path).await.problem(404, "body-not-found");
    world.post("/retry-tasks", &submission("l", &unused)).await.problem(422, "unknown-body");
    assert_eq!(world.get(&format!("/blobs/{used}")).await.body, "used");
    // It can be brought again, and then it is there again.
    upload(&world, b"unused").await;
    world.submit(&submission("l", &unused)).await;
}
