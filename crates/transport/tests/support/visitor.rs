//! A connection as the server sees it.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::request::Request;
use super::server::Seen;

/// A connection as the server sees it. Dropping it closes it.
pub struct Visitor<S> {
    stream: S,
    unread: Vec<u8>,
    pub(super) seen: Arc<Seen>,
    _open: Open,
}

impl Visitor<TcpStream> {
    pub(super) fn new(stream: TcpStream, seen: Arc<Seen>) -> Self {
        stream.set_nodelay(true).unwrap();
        seen.count(|counts| {
            counts.accepted += 1;
            counts.open += 1;
            counts.most_open = counts.most_open.max(counts.open);
        });
        Visitor { stream, unread: Vec::new(), _open: Open(seen.clone()), seen }
    }

    /// Resets the connection: the other side gets an error, not an end.
    pub fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }

    /// Closes it at once as a process that dies would, with a reset only if something is left unread.
    pub fn close(self) {}

    /// Speaks TLS from here on; nothing if that does not work out.
    pub async fn secure(self, acceptor: &TlsAcceptor) -> Option<Visitor<TlsStream<TcpStream>>> {
        let Visitor { stream, unread, seen, _open } = self;
        let stream = acceptor.accept(stream).await.ok()?;
        Some(Visitor { stream, unread, seen, _open })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Visitor<S> {
    /// Reads the head of a request; nothing if the other side closes first.
    pub async fn read_head(&mut self) -> Option<Request> {
        self.begin_request().await.map(|(_, request)| request)
    }

    /// Reads a request whose body, if any, has a `content-length`; nothing if the other side closes first.
    pub async fn read_request(&mut self) -> Option<Request> {
        let (place, mut request) = self.begin_request().await?;
        let length = request.one("content-length").map_or(0, |length| length.parse().unwrap());
        while self.unread.len() < length {
            self.read_more().await?;
        }
        request.body = self.unread.drain(..length).collect();
        self.seen.complete(place, &request.body);
        Some(request)
    }

    /// Reads and forgets whatever comes, until the other side closes.
    pub async fn read_to_end(&mut self) {
        while self.read_more().await.is_some() {
            self.unread.clear();
        }
    }

    /// Reads until at least this many bytes came, and takes them.
    pub async fn read_bytes(&mut self, least: usize) -> Option<Vec<u8>> {
        while self.unread.len() < least {
            self.read_more().await?;
        }
        Some(std::mem::take(&mut self.unread))
    }

    /// Writes these bytes, as they are.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let bytes = bytes.as_ref();
        self.stream.write_all(bytes).await?;
        self.stream.flush().await?;
        self.seen.count(|counts| counts.written += bytes.len() as u64);
        Ok(())
    }

    /// The stream alone; the connection counts as open until the second part is dropped.
    pub fn into_stream(self) -> (S, impl Send + use<S>) {
        (self.stream, self._open)
    }

    async fn begin_request(&mut self) -> Option<(usize, Request)> {
        const END: &[u8] = b"\r\n\r\n";
        let end = loop {
            match self.unread.windows(END.len()).position(|window| window == END) {
                Some(at) => break at + END.len(),
                None => self.read_more().await?,
            }
        };
        let head: Vec<u8> = self.unread.drain(..end).collect();
        let request = Request::parse(&head).unwrap();
        Some((self.seen.begin(request.clone()), request))
    }

    async fn read_more(&mut self) -> Option<()> {
        match self.stream.read_buf(&mut self.unread).await {
            Ok(0) | Err(_) => None,
            Ok(bytes) => {
                self.seen.count(|counts| counts.received += bytes as u64);
                Some(())
            }
        }
    }
}

/// Counts a connection for as long as it is open.
struct Open(Arc<Seen>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.count(|counts| counts.open -= 1);
    }
}
