//! One kept connection to a service, one request at a time.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::message::Frame;

/// Room for a usual answer without growing.
const INBOX: usize = 8 * 1024;

/// A kept connection.
pub struct Connection {
    stream: TcpStream,
    inbox: BytesMut,
}

/// An answer; valid until the next call on the same connection.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: &'a [u8],
}

impl Answer<'_> {
    /// Status and body, for an error message.
    pub fn describe(&self) -> String {
        format!("{} {}", self.status, String::from_utf8_lossy(self.body))
    }
}

impl Connection {
    /// Connects.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, inbox: BytesMut::with_capacity(INBOX) })
    }

    /// Sends the bytes of one whole request and waits for its answer.
    ///
    /// After an error the connection is unusable: the request may have been received or not.
    pub async fn call(&mut self, request: &[u8]) -> Result<Answer<'_>> {
        self.inbox.clear();
        self.stream.write_all(request).await.context("sending a request")?;
        let frame = loop {
            if self.stream.read_buf(&mut self.inbox).await.context("reading an answer")? == 0 {
                bail!("the connection was closed before the answer was complete");
            }
            if let Some(frame) = Frame::find(&self.inbox)? {
                break frame;
            }
        };
        let (head, rest) = self.inbox.split_at(frame.head);
        let status = head.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let status = status.context("an answer without a status code")?;
        Ok(Answer { status, body: &rest[..frame.total - frame.head] })
    }
}
