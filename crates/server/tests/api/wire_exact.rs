//! The bytes of a body, through the real transport to a real target.

use std::sync::Arc;

use base64::Engine as _;
use redrive_server::{Limits, rest};
use redrive_transport::HttpTransport;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::world::{ScriptedTarget, World};

/// A target that reads one request with a content-length and answers it with `answer`.
async fn target(answer: Vec<u8>) -> (String, JoinHandle<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    let received = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = Vec::new();
        loop {
            assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "the request broke off");
            let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap_or("0");
            let length: usize = length.trim().parse().unwrap();
            if bytes.len() >= end + 4 + length {
                stream.write_all(&answer).await.unwrap();
                return (head, bytes[end + 4..].to_vec());
            }
        }
    });
    (url, received)
}

async fn world() -> World {
    let transport = HttpTransport::new(redrive_transport::Options::default()).unwrap();
    let target = Arc::new(ScriptedTarget::default());
    World::with_transport(Limits::default(), rest::Options::default(), Arc::new(transport), target).await
}

#[tokio::test]
async fn a_json_body_reaches_the_target_byte_for_byte() {
    let world = world().await;
    for body in [
        "{ \"a\" :\t[ 1 , 2 ] ,\r\n  \"b\" : {} }",
        "{\"a\":1,\"a\":2,\"a\":{\"a\":3}}",
        "123456789012345678901234567890.000100e+999",
        "[1.0, 1.10, -0, 1E5, 0.1e-7]",
        "\"\\u00e9\\ud83d\\ude00 \\/ é 😀\"",
        "null",
        "\"\"",
    ] {
        let (url, received) = target(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()).await;
        let id = world.submit(&format!("{{\"targetUrl\":\"{url}\",\"bodyJson\": \n{body}\t }}")).await;
        let (head, sent) = received.await.unwrap();
        assert_eq!(String::from_utf8_lossy(&sent), body);
        assert!(head.contains("content-type: application/json"), "{head}");
        assert!(head.contains(&format!("redrive-task-id: {id}")), "{head}");
        assert_eq!(world.ended(&id).await["status"], "SUCCEEDED");
    }
}

#[tokio::test]
async fn a_text_and_any_bytes_reach_the_target_as_given() {
    let world = world().await;
    let all_bytes: Vec<u8> = (0..=255).collect();
    let encoded = base64::engine::general_purpose::STANDARD.encode(&all_bytes);
    for (field, expected, content_type) in [
        (
            r#""body":"line\r\n\u0000é""#.to_owned(),
            "line\r\n\0é".as_bytes().to_vec(),
            Some("text/plain; charset=utf-8"),
        ),
        (format!(r#""bodyBase64":"{encoded}""#), all_bytes, None),
        (
            r#""body":"<a/>","headers":{"Content-Type":"application/xml"}"#.to_owned(),
            b"<a/>".to_vec(),
            Some("application/xml"),
        ),
    ] {
        let (url, received) = target(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()).await;
        world.submit(&format!("{{\"targetUrl\":\"{url}\",{field}}}")).await;
        let (head, sent) = received.await.unwrap();
        assert_eq!(sent, expected, "{field}");
        let given = head.lines().find_map(|line| line.strip_prefix("content-type: "));
        assert_eq!(given, content_type, "{field}");
    }
}

#[tokio::test]
async fn an_answer_is_kept_up_to_64_kib_and_shown_without_its_secrets() {
    let world = world().await;
    let head = |length: usize, extra: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n{extra}\r\n");
    let long = "é".repeat(40_000);
    let exact = "x".repeat(64 * 1024);
    for (body, extra, text, truncated) in [
        (&exact[..], "", Some(&exact[..]), false),
        (
            &long[..],
            "Set-Cookie: a=b\r\nSet-Cookie: c=d\r\nX-Session-Token: t\r\nx-ok: 1\r\n",
            Some(&long[..64 * 1024]),
            true,
        ),
    ] {
        let mut wire = head(body.len(), extra).into_bytes();
        wire.extend_from_slice(body.as_bytes());
        let (url, _received) = target(wire).await;
        let id = world.submit(&format!("{{\"targetUrl\":\"{url}\"}}")).await;
        let response = &world.ended(&id).await["response"];
        assert_eq!(response["body"].as_str(), text);
        assert_eq!((response["status"].as_u64(), response["truncated"].as_bool()), (Some(200), Some(truncated)));
        assert_eq!(response.get("bodyBase64"), None);
        if !extra.is_empty() {
            assert_eq!(response["headers"]["set-cookie"], serde_json::json!(["***", "***"]));
            assert_eq!(response["headers"]["x-session-token"], "***");
            assert_eq!(response["headers"]["x-ok"], "1");
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_not_text_is_shown_as_base64() {
    let world = world().await;
    let (url, _received) = target(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 3\r\n\r\n\xff\x00\xfe".to_vec()).await;
    let id = world.submit(&format!("{{\"targetUrl\":\"{url}\"}}")).await;
    let task = world.ended(&id).await;
    assert_eq!((task["status"].as_str(), task["statusReason"].as_str()), (Some("FAILED"), Some("not-retryable")));
    assert_eq!(task["response"]["bodyBase64"], "/wD+");
    assert_eq!(task["response"].get("body"), None);
    assert_eq!(task["lastError"]["type"], "http-status");
}
