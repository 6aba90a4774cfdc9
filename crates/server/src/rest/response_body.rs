//! The body of an answer as hyper sends it: complete, or piece by piece.
//!
//! Every piece that hyper takes holds its [`Exchange`] until it is written to the socket. Only then is its memory
//! released, and the caller counts as reading.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use redrive_engine::bodies::{BodyError, Pieces};

use super::peer::Exchange;

/// The most bytes that hyper takes at once.
const PIECE: usize = 64 * 1024;

/// An answer's body, as hyper takes it.
pub(crate) struct ResponseBody {
    content: Content,
    exchange: Arc<Exchange>,
}

enum Content {
    Whole(Bytes),
    /// The rest of the current piece, the pieces to come, and the bytes of both if that is known. A failure closes the
    /// connection, so that the caller does not take a part for the whole.
    Streamed(Bytes, Pieces, Option<u64>),
}

impl ResponseBody {
    pub(crate) fn whole(bytes: Bytes, exchange: Arc<Exchange>) -> Self {
        ResponseBody { content: Content::Whole(bytes), exchange }
    }

    pub(crate) fn streamed(pieces: Pieces, length: Option<u64>, exchange: Arc<Exchange>) -> Self {
        ResponseBody { content: Content::Streamed(Bytes::new(), pieces, length), exchange }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let ResponseBody { content, exchange } = self.get_mut();
        let taken = |bytes| {
            exchange.offered();
            Frame::data(Bytes::from_owner(Piece { bytes, exchange: exchange.clone() }))
        };
        match content {
            Content::Whole(left) if left.is_empty() => Poll::Ready(None),
            Content::Whole(left) => Poll::Ready(Some(Ok(taken(left.split_to(PIECE.min(left.len())))))),
            Content::Streamed(piece, pieces, left) => {
                while piece.is_empty() {
                    let Poll::Ready(next) = pieces.as_mut().poll_next(cx) else {
                        exchange.produces();
                        return Poll::Pending;
                    };
                    match next {
                        Some(Ok(next)) => *piece = next,
                        Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                        None => return Poll::Ready(None),
                    }
                }
                let part = piece.split_to(PIECE.min(piece.len()));
                *left = left.map(|left| left.saturating_sub(part.len() as u64));
                Poll::Ready(Some(Ok(taken(part))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(left) => left.is_empty(),
            Content::Streamed(_, _, left) => *left == Some(0),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(left) => SizeHint::with_exact(left.len() as u64),
            Content::Streamed(_, _, left) => left.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
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
