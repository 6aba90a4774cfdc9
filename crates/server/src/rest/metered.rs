//! A socket that counts arriving bytes in its [`Peer`].

use std::io::{Error, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, Take};
use tokio::net::TcpStream;

use super::peer::Peer;

/// The most bytes that one read brings. hyper makes its buffer twice as large as a read that filled it, and keeps it
/// while it waits for the rest of a body: with larger reads, 4,096 such connections would hold 256 MiB in buffers that
/// are not counted.
const MOST_READ: u64 = 8 * 1024;

/// A socket that counts arriving bytes in its [`Peer`].
pub(crate) struct Metered {
    /// Limited anew for every read.
    stream: Take<TcpStream>,
    peer: Arc<Peer>,
}

impl Metered {
    pub(crate) fn new(stream: TcpStream, peer: Arc<Peer>) -> Self {
        Metered { stream: stream.take(0), peer }
    }
}

impl AsyncRead for Metered {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<(), Error>> {
        let before = buffer.filled().len();
        self.stream.set_limit(MOST_READ);
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        Poll::Ready(self.peer.arrived(buffer.filled().len() - before).map_err(Error::other))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Error>> {
        Pin::new(self.stream.get_mut()).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize, Error>> {
        Pin::new(self.stream.get_mut()).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.get_ref().is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(self.stream.get_mut()).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(self.stream.get_mut()).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::super::memory::Memory;
    use super::super::peer::{Purpose, Uptime};
    use super::*;

    const MOST: usize = MOST_READ as usize;

    #[tokio::test]
    async fn a_read_brings_no_more_than_its_limit_and_all_bytes_come() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut caller = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let sent: Vec<u8> = (0..5 * MOST + 7).map(|at| (at % 251) as u8).collect();
        caller.write_all(&sent).await.unwrap();
        drop(caller);
        let memory = Memory::new(1024 * 1024);
        let mut metered = Metered::new(stream, Peer::new(memory, Uptime::begin(), Purpose::Anything));
        let (mut came, mut buffer) = (Vec::new(), vec![0; 8 * MOST]);
        loop {
            let length = metered.read(&mut buffer).await.unwrap();
            assert!(length <= MOST, "{length}");
            came.extend_from_slice(&buffer[..length]);
            if length == 0 {
                break;
            }
        }
        assert_eq!(came, sent);
    }
}
