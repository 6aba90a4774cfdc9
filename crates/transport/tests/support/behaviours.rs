//! The usual ways to behave and to misbehave.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::visitor::Visitor;

/// An answer that says little.
pub const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Answers each request with these bytes, and keeps the connection.
pub async fn answer<S: AsyncRead + AsyncWrite + Unpin>(mut visitor: Visitor<S>, bytes: impl AsRef<[u8]>) {
    while visitor.read_request().await.is_some() {
        if visitor.write(&bytes).await.is_err() {
            return;
        }
    }
}

/// Answers one request with these bytes and closes the connection, whatever the answer says about that.
pub async fn answer_and_close(mut visitor: Visitor<TcpStream>, bytes: impl AsRef<[u8]>) {
    if visitor.read_request().await.is_some() && visitor.write(bytes).await.is_ok() {
        visitor.close();
    }
}

/// Answers one request with these bytes; takes a second one on the same connection and closes it without an answer.
pub async fn answer_one_and_lose_one(mut visitor: Visitor<TcpStream>, bytes: impl AsRef<[u8]>) {
    if visitor.read_request().await.is_some()
        && visitor.write(bytes).await.is_ok()
        && visitor.read_request().await.is_some()
    {
        visitor.close();
    }
}

/// Says something before it was asked, and then only listens.
pub async fn say_first(mut visitor: Visitor<TcpStream>, bytes: impl AsRef<[u8]>) {
    if visitor.write(bytes).await.is_ok() {
        visitor.read_to_end().await;
    }
}

/// Takes everything and never answers.
pub async fn stall(mut visitor: Visitor<TcpStream>) {
    if visitor.read_request().await.is_some() {
        visitor.read_to_end().await;
    }
}

/// Does not even read.
pub async fn ignore(visitor: Visitor<TcpStream>) {
    std::future::pending::<()>().await;
    drop(visitor);
}

/// Resets the connection before anything was read.
pub async fn reset_at_once(visitor: Visitor<TcpStream>) {
    visitor.reset();
}

/// Resets the connection when the head of the request is in.
pub async fn reset_after_head(mut visitor: Visitor<TcpStream>) {
    if visitor.read_head().await.is_some() {
        visitor.reset();
    }
}

/// Resets the connection when the whole request is in.
pub async fn reset_after_request(mut visitor: Visitor<TcpStream>) {
    if visitor.read_request().await.is_some() {
        visitor.reset();
    }
}

/// Answers with these bytes, which should not be a whole answer, and resets the connection.
pub async fn reset_after_answering(mut visitor: Visitor<TcpStream>, bytes: &str) {
    if visitor.read_request().await.is_some() && visitor.write(bytes).await.is_ok() {
        visitor.reset();
    }
}

/// Answers with these bytes, and then with one byte after another, never to end.
pub async fn trickle(mut visitor: Visitor<TcpStream>, beginning: &str) {
    if visitor.read_request().await.is_none() || visitor.write(beginning).await.is_err() {
        return;
    }
    while visitor.write("x").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// How much [`flood_sized`] and [`flood_chunked`] would send.
pub const FLOOD: u64 = 10_000_000_000;

const PIECE: usize = 64 * 1024;

/// Answers with ten gigabytes of a known length.
pub async fn flood_sized(mut visitor: Visitor<TcpStream>) {
    if visitor.read_request().await.is_none() {
        return;
    }
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {FLOOD}\r\n\r\n");
    flood(&mut visitor, head, vec![b'x'; PIECE]).await;
}

/// Answers with ten gigabytes in chunks.
pub async fn flood_chunked(mut visitor: Visitor<TcpStream>) {
    if visitor.read_request().await.is_none() {
        return;
    }
    let mut piece = format!("{PIECE:x}\r\n").into_bytes();
    piece.extend([b'x'; PIECE]);
    piece.extend(b"\r\n");
    flood(&mut visitor, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".into(), piece).await;
}

async fn flood(visitor: &mut Visitor<TcpStream>, head: String, piece: Vec<u8>) {
    if visitor.write(head).await.is_err() {
        return;
    }
    for _ in 0..FLOOD / PIECE as u64 {
        if visitor.write(&piece).await.is_err() {
            return;
        }
    }
}
