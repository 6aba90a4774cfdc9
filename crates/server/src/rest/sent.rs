//! The body of an answer on its way out: complete, or piece by piece.
//!
//! Every piece that hyper takes holds its [`Exchange`] until it is written to the socket: only then is its memory given
//! back, and only then has the caller taken something.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use redrive_engine::bodies::{BodyError, Pieces};

use super::peer::Exchange;

/// The most bytes that hyper takes at once.
const PIECE: usize = 64 * 1024;

/// An answer's body, as hyper takes it.
pub(crate) struct Sent {
    content: Content,
    exchange: Arc<Exchange>,
}

enum Content {
    Whole(Bytes),
    /// What is left of the last piece, the pieces to come, and the bytes of both. One that fails ends the connection, so
    /// that nobody takes a part for the whole.
    Streamed(Bytes, Pieces, u64),
}

impl Sent {
    pub(crate) fn whole(bytes: Bytes, exchange: Arc<Exchange>) -> Self {
        Sent { content: Content::Whole(bytes), exchange }
    }

    pub(crate) fn streamed(pieces: Pieces, length: u64, exchange: Arc<Exchange>) -> Self {
        Sent { content: Content::Streamed(Bytes::new(), pieces, length), exchange }
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Sent { content, exchange } = self.get_mut();
        let taken = |bytes| Frame::data(Bytes::from_owner(Piece { bytes, exchange: exchange.clone() }));
        match content {
            Content::Whole(left) if left.is_empty() => Poll::Ready(None),
            Content::Whole(left) => Poll::Ready(Some(Ok(taken(left.split_to(PIECE.min(left.len())))))),
            Content::Streamed(piece, pieces, left) => {
                while piece.is_empty() {
                    match ready!(pieces.as_mut().poll_next(cx)) {
                        Some(Ok(next)) => *piece = next,
                        Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                        None => return Poll::Ready(None),
                    }
                }
                let part = piece.split_to(PIECE.min(piece.len()));
                *left = left.saturating_sub(part.len() as u64);
                Poll::Ready(Some(Ok(taken(part))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(left) => left.is_empty(),
            Content::Streamed(_, _, left) => *left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match &self.content {
            Content::Whole(left) => left.len() as u64,
            Content::Streamed(_, _, left) => *left,
        })
    }
}

/// A piece that hyper has taken and not written yet.
struct Piece {
    bytes: Bytes,
    exchange: Arc<Exchange>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.exchange.taken();
    }
}
