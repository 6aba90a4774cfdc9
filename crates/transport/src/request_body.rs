//! The body of a request: bytes in memory, or a stream from blob storage.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use redrive_engine::bodies::{BodyError, Pieces};

/// A request's body, as hyper takes it.
pub(crate) enum RequestBody {
    /// Bytes in memory.
    Whole(Full<Bytes>),
    /// A stream from blob storage.
    Streamed(Streamed),
}

/// A stored body. It ends without an error only if all of its bytes came. If it fails, hyper closes the connection or
/// resets the stream, so that the receiver does not take a part for the whole.
pub(crate) struct Streamed {
    pieces: Pieces,
    left: u64,
    state: BodyState,
}

/// The state of reading a stored body: HTTP/2 does not report it, so it is shared here.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyState(Arc<State>);

#[derive(Debug, Default)]
struct State {
    failed: Mutex<Option<BodyError>>,
    waits: AtomicBool,
}

impl BodyState {
    /// What went wrong, if anything did.
    pub(crate) fn get(&self) -> Option<BodyError> {
        self.0.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the next piece is asked for and has not come.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.0.waits.load(Ordering::Acquire)
    }

    fn set(&self, error: &BodyError) {
        *self.0.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
    }
}

impl RequestBody {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        RequestBody::Whole(Full::new(bytes))
    }

    /// A body of this many bytes; `state` is told how it goes.
    pub(crate) fn streamed(pieces: Pieces, length: u64, state: BodyState) -> Self {
        RequestBody::Streamed(Streamed { pieces, left: length, state })
    }

    /// How many bytes there are.
    pub(crate) fn length(&self) -> u64 {
        match self {
            RequestBody::Whole(bytes) => bytes.size_hint().lower(),
            RequestBody::Streamed(streamed) => streamed.left,
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            RequestBody::Whole(bytes) => Pin::new(bytes).poll_frame(cx).map_err(|never| match never {}),
            RequestBody::Streamed(streamed) => streamed.poll_piece(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            RequestBody::Whole(bytes) => bytes.is_end_stream(),
            RequestBody::Streamed(streamed) => streamed.left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length())
    }
}

impl Streamed {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let next = self.pieces.as_mut().poll_next(cx);
        self.state.0.waits.store(next.is_pending(), Ordering::Release);
        let piece = match next {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) if self.left == 0 => return Poll::Ready(None),
            Poll::Ready(None) => {
                Err(BodyError::Unavailable(format!("the stored body ended {} bytes early", self.left)))
            }
            Poll::Ready(Some(Ok(piece))) if piece.len() as u64 > self.left => {
                Err(BodyError::Damaged("it is longer than recorded".into()))
            }
            Poll::Ready(Some(piece)) => piece,
        };
        match &piece {
            Ok(bytes) => self.left -= bytes.len() as u64,
            Err(error) => self.state.set(error),
        }
        Poll::Ready(Some(piece.map(Frame::data)))
    }
}
