//! Header fields of a submission, as lines, sent over a socket to the REST server: mainly `Idempotency-Key`.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use redrive_server::{App, Limits, rest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::json;
use crate::target::Target;
use crate::world::{World, block_on};

pub(crate) const TARGET: Target = Target {
    name: "headers",
    what: "the header fields of a submission over HTTP, its idempotency key above all",
    run,
    samples,
    words: &[
        "Idempotency-Key: ",
        "idempotency-key:",
        "Prefer: wait=0",
        "Prefer: ",
        "wait=",
        "respond-async, ",
        "Host: ",
        "Origin: ",
        "http://localhost",
        "null",
        "Content-Type: ",
        "application/json",
        "; charset=",
        "utf-16",
        "If-Match: ",
        "\"",
        "\\",
        "\\\"",
        "W/\"1\"",
        "*",
        ",",
        ";",
        "=",
        "\n",
        "\t",
        "é",
        "\u{7f}",
        "Sec-Fetch-Site: cross-site",
        "Accept: text/html",
        "Expect: 100-continue",
        "Content-Encoding: gzip",
        "Upgrade: h2c",
        "0",
    ],
    generate,
    max_bytes: 2 * 1024,
};

const DOCUMENT: &str = r#"{"targetUrl":"http://127.0.0.1:1/"}"#;
const KEY: &str = "idempotency-key";

/// Fields that determine the end of the message: with them the bytes would be another message without an answer.
const FRAMING: [&str; 3] = ["content-length", "transfer-encoding", "connection"];

fn samples() -> Vec<Vec<u8>> {
    json::texts(&[
        "",
        "Idempotency-Key: order-1234",
        "Idempotency-Key: \"a\\\"b\\\\c\"\nPrefer: respond-async, wait=0",
        "idempotency-key: a\nidempotency-key: \"a\"\nOrigin: http://localhost:99",
        "Content-Type: application/json; charset=\"utf-8\"\nAccept: application/json",
    ])
}

/// A key of random characters, bare or in quotes.
fn generate(random: &mut Rng) -> Vec<u8> {
    let length = random.usize(..80);
    let character = |random: &mut Rng| match random.u8(..40) {
        0 => ' ',
        1 => 'é',
        2 => '"',
        _ => char::from(random.u8(0x21..0x7f)),
    };
    let key: String = (0..length).map(|_| character(random)).collect();
    match random.bool() {
        true => format!("Idempotency-Key: {key}").into_bytes(),
        false => format!("Idempotency-Key: \"{key}\"").into_bytes(),
    }
}

fn run(input: &[u8]) {
    let lines: Vec<&[u8]> =
        input.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| may_be_sent(line)).collect();
    let (first, second) = block_on(async {
        let world = World::start().await;
        // No time passes here, so a caller that waits for a task's end would never get an answer.
        let limits = Limits { longest_wait: Duration::ZERO, ..Limits::default() };
        let app = Arc::new(App { limits, ..App::clone(&world.app) });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
        let address = listener.local_addr().expect("a listener has an address");
        tokio::spawn(rest::serve(listener, app, rest::Options::default(), std::future::pending()));
        let mut answers = Vec::new();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(address).await.expect("the server listens");
            stream.write_all(&request(&lines)).await.expect("the server takes a request");
            let mut answer = Vec::new();
            // A server that closes before it has read everything may reset the connection after its answer.
            stream.read_to_end(&mut answer).await.unwrap_or_default();
            answers.push(Answer::parse(&answer));
        }
        let second = answers.pop().flatten();
        (answers.pop().flatten(), second)
    });
    let first = first.expect("every request is answered");
    let second = second.expect("every request is answered");
    first.check();
    second.check();
    check_key(&lines, &first, &second);
}

fn may_be_sent(line: &[u8]) -> bool {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default().trim_ascii();
    // A line that begins with a space would continue the one before it.
    !line.is_empty()
        && !line[0].is_ascii_whitespace()
        && !FRAMING.iter().any(|field| name.eq_ignore_ascii_case(field.as_bytes()))
}

fn request(lines: &[&[u8]]) -> Vec<u8> {
    let has = |name: &str| {
        lines.iter().any(|line| {
            line.split(|byte| *byte == b':').next().is_some_and(|given| given.eq_ignore_ascii_case(name.as_bytes()))
        })
    };
    let mut head = b"POST /retry-tasks HTTP/1.1\r\nconnection: close\r\n".to_vec();
    head.extend(format!("content-length: {}\r\n", DOCUMENT.len()).bytes());
    if !has("host") {
        head.extend(b"host: localhost\r\n");
    }
    if !has("content-type") {
        head.extend(b"content-type: application/json\r\n");
    }
    for line in lines {
        head.extend_from_slice(line);
        head.extend(b"\r\n");
    }
    [&head[..], b"\r\n", DOCUMENT.as_bytes()].concat()
}

/// An answer of the server.
#[derive(Debug)]
struct Answer {
    status: u16,
    is_problem: bool,
    /// Null if the request was not valid HTTP.
    document: serde_json::Value,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Option<Answer> {
        let text = std::str::from_utf8(bytes).expect("an answer is text");
        // An informational answer may come first.
        let text = text.strip_prefix("HTTP/1.1 100 Continue\r\n\r\n").unwrap_or(text);
        let status = text.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        let is_problem = head.to_ascii_lowercase().contains("content-type: application/problem+json");
        let document = if body.is_empty() { serde_json::Value::Null } else { serde_json::from_str(body).ok()? };
        Some(Answer { status, is_problem, document })
    }

    /// No header makes the server fail, and a refusal names what was wrong with the request.
    fn check(&self) {
        assert!(self.status < 500, "{self:?}");
        // hyper itself answers what is not HTTP, without a document.
        if self.status >= 400 && !self.document.is_null() {
            assert!(self.is_problem, "{self:?}");
            assert_eq!(self.document["status"], self.status, "{self:?}");
            for member in ["type", "title", "detail"] {
                assert!(self.document[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {self:?}");
            }
        }
    }
}

/// The task has the key that was sent, and the same request with it is the same task.
fn check_key(lines: &[&[u8]], first: &Answer, second: &Answer) {
    let Some(key) = first.document["idempotencyKey"].as_str().filter(|_| first.status < 300) else { return };
    assert!((1..=64).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()), "{key:?}");
    let sent: Vec<&str> = lines
        .iter()
        .filter_map(|line| std::str::from_utf8(line).ok()?.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case(KEY))
        .map(|(_, value)| value.trim_matches([' ', '\t']))
        .collect();
    let was_generated = first.document["idempotencyKeyGenerated"] == true;
    assert_eq!(was_generated, sent.is_empty(), "{key:?} for {sent:?}");
    if let [only] = sent[..] {
        let in_quotes = format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""));
        assert!(only == key || only == in_quotes, "{only:?} was read as {key:?}");
        assert_eq!((second.document["taskId"].as_str(), second.status / 100), (first.document["taskId"].as_str(), 2));
    }
}
