//! The body of an answer on its way out: complete, or piece by piece.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use redrive_engine::bodies::{BodyError, Pieces};

/// An answer's body, as hyper takes it.
pub(crate) enum Sent {
    Whole(Full<Bytes>),
    /// With as many bytes to come. One that fails ends the connection, so that nobody takes a part for the whole.
    Streamed(Pieces, u64),
}

impl Body for Sent {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Sent::Whole(bytes) => Pin::new(bytes).poll_frame(cx).map_err(|never| match never {}),
            Sent::Streamed(pieces, left) => pieces.as_mut().poll_next(cx).map_ok(|piece| {
                *left = left.saturating_sub(piece.len() as u64);
                Frame::data(piece)
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Sent::Whole(bytes) => bytes.is_end_stream(),
            Sent::Streamed(_, left) => *left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Sent::Whole(bytes) => bytes.size_hint(),
            Sent::Streamed(_, left) => SizeHint::with_exact(*left),
        }
    }
}
