//! What is too large.

use redrive_server::{Limits, rest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{Ask, World};

async fn small() -> World {
    let limits =
        Limits { body_bytes: 100, document_bytes: 400, batch_bytes: 2_000, batch_tasks: 3, ..Limits::default() };
    World::with(limits, rest::Options::default()).await
}

#[tokio::test]
async fn a_body_over_its_limit_is_413_and_named_however_it_is_written() {
    let world = small().await;
    let text = |length| format!(r#"{{"targetUrl":"https://example.com/","body":"{}"}}"#, "x".repeat(length));
    let json =
        |length: usize| format!(r#"{{"targetUrl":"https://example.com/","bodyJson":"{}"}}"#, "x".repeat(length - 2));
    let base64 = |length: usize| {
        format!(r#"{{"targetUrl":"https://example.com/","bodyBase64":"{}"}}"#, "YWJj".repeat(length / 3))
    };
    let escaped = format!(r#"{{"targetUrl":"https://example.com/","body":"{}"}}"#, r"\u0000".repeat(100));
    for document in [text(100), json(100), base64(99), escaped] {
        assert_eq!(world.post("/retry-tasks", &document).await.status, 201, "{document}");
    }
    for (document, field) in [(text(101), "body"), (json(101), "bodyJson"), (base64(102), "bodyBase64")] {
        let problem = world.post("/retry-tasks", &document).await.problem(413, "content-too-large");
        assert_eq!((problem["field"].as_str(), problem["limitBytes"].as_u64()), (Some(field), Some(100)));
    }
}

#[tokio::test]
async fn a_request_over_its_limit_is_413() {
    let world = small().await;
    let huge = format!(r#"{{"targetUrl":"https://example.com/","body":"{}"}}"#, "x".repeat(1_100));
    for (path, limit) in [("/retry-tasks", 1_000), ("/retry-tasks/batch", 2_000), ("/retry-policies", 400)] {
        let document = if path == "/retry-tasks/batch" { huge.repeat(2) } else { huge.clone() };
        let answer = world.post(path, &document).await;
        assert_eq!(answer.problem(413, "content-too-large")["limitBytes"], limit, "{path}");
        assert_eq!(answer.header("connection"), Some("close"));
    }
}

#[tokio::test]
async fn reading_stops_at_the_limit_even_if_the_length_was_not_announced() {
    let world = small().await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(b"POST /retry-tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
    // 1,100 bytes of a body that would never end.
    for _ in 0..11 {
        stream.write_all(format!("64\r\n{}\r\n", " ".repeat(100)).as_bytes()).await.unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("/problems/content-too-large"), "{answer}");
}

#[tokio::test]
async fn a_caller_that_announces_too_much_is_told_before_it_sends() {
    let world = small().await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let head = "POST /retry-tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 5000\r\nexpect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_408() {
    let options = rest::Options { body_read_timeout: std::time::Duration::from_millis(1), ..rest::Options::default() };
    let world = World::with(Limits::default(), options).await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(b"POST /retry-tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("/problems/request-timeout"), "{answer}");
}

#[tokio::test]
async fn a_batch_over_its_limit_is_refused_as_a_whole() {
    let world = small().await;
    let task = r#"{"targetUrl":"https://example.com/"}"#;
    let batch = format!(r#"{{"tasks":[{task},{task},{task},{task}]}}"#);
    let problem = world.post("/retry-tasks/batch", &batch).await.problem(422, "invalid-value");
    assert_eq!(problem["field"], "tasks");
    assert_eq!(world.ask(Ask::get("/retry-tasks")).await.json()["tasks"].as_array().unwrap().len(), 0);
}
