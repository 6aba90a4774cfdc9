//! An HTTP answer: the first byte selects how it is sent, the rest is what the server writes.
//!
//! The server is a loopback socket that reads a request, writes these bytes and closes. How the bytes are split into
//! pieces must not matter.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use redrive_core::{Answer, Dependency, ErrorType, IdempotencyKey, Lane, Policy, Request, TaskId, TenantId, classify};
use redrive_engine::transport::{AlwaysOpen, Outbound, SendError, Transport as _};
use redrive_transport::{HttpTransport, Options, PlainProtocol, Roots};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::json;
use crate::target::Target;
use crate::world::{NOW, block_on};

pub(crate) const TARGET: Target = Target {
    name: "answer",
    what: "the bytes that a dependency answers with, over HTTP/1.1 and HTTP/2",
    run,
    samples,
    words: &[
        "HTTP/1.1 ",
        "HTTP/1.0 200 OK\r\n",
        "HTTP/2 ",
        "200 OK",
        "100 Continue\r\n\r\n",
        "101 Switching Protocols",
        "204",
        "304",
        "999",
        "000",
        "\r\n",
        "\r\n\r\n",
        "\n",
        "\r",
        ": ",
        "content-length: 5\r\n",
        "content-length: -1\r\n",
        "content-length: 18446744073709551616\r\n",
        "transfer-encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "connection: close\r\n",
        "retry-after: 5\r\n",
        "0\r\n\r\n",
        "ffffffffffffffff\r\n",
        "5;a=b\r\nhello\r\n",
        "\0\0\0\u{4}\0\0\0\0\0",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\0\0\u{8}\u{7}\0",
        "\u{88}",
    ],
    generate,
    max_bytes: 8 * 1024,
};

/// The bits of the first byte.
const HTTP2: u8 = 1;
const HEAD: u8 = 2;

/// Long enough for an answer that is written at once.
const PLENTY: Duration = Duration::from_secs(20);

fn samples() -> Vec<Vec<u8>> {
    let mut samples = json::texts(&[
        "\0HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        "\u{4}HTTP/1.1 503 Busy\r\nretry-after: 120\r\ndate: Tue, 14 Nov 2023 22:13:20 GMT\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx: y\r\n\r\n",
        "\0HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.0 200 OK\r\n\r\nuntil the end",
        "\u{2}HTTP/1.1 304 Not Modified\r\ncontent-length: 10\r\n\r\n",
    ]);
    // SETTINGS, its acknowledgement, HEADERS with `:status: 200`, DATA with the end of stream 1.
    samples.push(
        [
            &[HTTP2, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0][..],
            &[0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88],
            &[0, 0, 5, 0, 1, 0, 0, 0, 1],
            b"hello",
        ]
        .concat(),
    );
    samples
}

/// An answer with random fields and a body whose length is given in a random way; or random frames of HTTP/2.
fn generate(random: &mut Rng) -> Vec<u8> {
    if random.u8(..3) == 0 {
        return frames(random);
    }
    let body = "x".repeat(random.usize(..40));
    let mut answer = vec![random.u8(..) & !HTTP2];
    let status = random.u16(..1_000);
    answer.extend(format!("HTTP/1.1 {status:03} Some Words\r\n").bytes());
    for _ in 0..random.usize(..6) {
        let value: String = (0..random.usize(..20)).map(|_| char::from(random.u8(0x20..0x7f))).collect();
        answer.extend(format!("X-{}: {value}\r\n", random.alphanumeric()).bytes());
    }
    let (framing, body) = match random.u8(..4) {
        0 => (format!("content-length: {}\r\n", body.len()), body),
        1 => (format!("content-length: {}\r\n", random.u64(..)), body),
        2 => ("transfer-encoding: chunked\r\n".to_owned(), format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())),
        _ => (String::new(), body),
    };
    answer.extend(format!("{framing}\r\n{body}").bytes());
    answer
}

fn frames(random: &mut Rng) -> Vec<u8> {
    let mut answer = vec![HTTP2, 0, 0, 0, 4, 0, 0, 0, 0, 0];
    for _ in 0..random.usize(1..6) {
        let payload: Vec<u8> = match random.u8(..3) {
            0 => vec![0x88],
            _ => (0..random.usize(..20)).map(|_| random.u8(..)).collect(),
        };
        let (kind, flags, stream) = (random.u8(..11), random.u8(..) & 0x2d, random.u8(..3));
        answer.extend([0, 0, u8::try_from(payload.len()).unwrap_or(0), kind, flags, 0, 0, 0, stream]);
        answer.extend(payload);
    }
    answer
}

fn run(input: &[u8]) {
    let Some((&how, bytes)) = input.split_first() else { return };
    let whole = block_on(exchange(how, bytes.to_vec(), bytes.len()));
    check(&whole);
    if how & HTTP2 == 0 {
        let piece = usize::from(how >> 3) + 1;
        let in_pieces = block_on(exchange(how, bytes.to_vec(), piece));
        match (&whole, &in_pieces) {
            (Ok(whole), Ok(pieces)) => assert_eq!(whole, pieces, "pieces of {piece} bytes are another answer"),
            // Which error is detected first may depend on the pieces.
            (Err(_), Err(pieces)) => check_error(pieces),
            _ => panic!("whole: {whole:?}, in pieces of {piece} bytes: {in_pieces:?}"),
        }
    }
}

/// An answer is within its bounds. An error is one that a dependency can cause, with a message of our own.
fn check(outcome: &Result<Answer, SendError>) {
    match outcome {
        Ok(answer) => {
            assert!((101..1_000).contains(&answer.status), "{answer:?}");
            assert!(answer.body.length() <= Answer::BODY_LIMIT as u64, "{} bytes are kept", answer.body.length());
            for (name, value) in &answer.headers {
                let is_control = |letter: char| letter.is_control() && letter != '\t';
                assert!(
                    !name.is_empty() && !name.contains(is_control) && !value.contains(['\r', '\n', '\0']),
                    "{name:?}: {value:?}"
                );
            }
            let verdict = classify::answer(&Policy::default(), answer, NOW);
            assert_eq!(matches!(verdict, redrive_core::Verdict::Success), (200..300).contains(&answer.status));
        }
        Err(error) => check_error(error),
    }
}

fn check_error(SendError { kind, message }: &SendError) {
    assert!(matches!(kind, ErrorType::MalformedAnswer | ErrorType::ConnectionReset), "{kind:?}: {message}");
    assert!(!message.is_empty() && message.len() < 400 && !message.contains(char::is_control), "{message:?}");
}

/// One call to a server that writes `bytes` in pieces.
async fn exchange(how: u8, bytes: Vec<u8>, piece: usize) -> Result<Answer, SendError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
    let address = listener.local_addr().expect("a listener has an address");
    let bytes = Arc::new(bytes);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, how & HTTP2 != 0, bytes.clone(), piece.max(1)));
        }
    });
    let plain = if how & HTTP2 == 0 { PlainProtocol::Http1 } else { PlainProtocol::Http2 };
    let transport = HttpTransport::new(Options { roots: Roots::ExtraOnly, plain, ..Options::default() });
    transport.expect("a transport").send(outbound(address, if how & HEAD == 0 { "POST" } else { "HEAD" })).await
}

/// Reads one request, writes the bytes and ends. What comes after that is read and discarded, so that there is no
/// reset.
async fn serve(mut stream: TcpStream, at_once: bool, bytes: Arc<Vec<u8>>, piece: usize) {
    let mut head = Vec::new();
    let mut buffer = [0; 4_096];
    while !at_once && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(read) => head.extend_from_slice(&buffer[..read]),
        }
    }
    stream.set_nodelay(true).unwrap_or_default();
    let (mut reader, mut writer) = stream.split();
    let write = async {
        for piece in bytes.chunks(piece) {
            if writer.write_all(piece).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
        writer.shutdown().await.unwrap_or_default();
    };
    let read = async { while let Ok(1..) = reader.read(&mut buffer).await {} };
    tokio::join!(write, read);
}

fn outbound(address: SocketAddr, method: &str) -> Outbound {
    let request = Request {
        target_url: format!("http://{address}/"),
        method: method.to_owned(),
        headers: Vec::new(),
        body: redrive_core::Body::default(),
        overrides: None,
        labels: std::collections::BTreeMap::new(),
    };
    Outbound {
        lane: Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new("d").expect("a dependency") },
        request: Arc::new(request),
        idempotency_key: IdempotencyKey::try_new("k").expect("a key"),
        task: TaskId::from_parts(1, 1),
        attempt: 1,
        trace: None,
        connect_timeout: PLENTY,
        attempt_timeout: PLENTY,
        gate: Arc::new(AlwaysOpen),
    }
}
