//! The body on its way out: bytes that are here, or pieces that come from where they are kept.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use redrive_engine::bodies::{BodyError, Pieces};

/// A request's body, as hyper takes it.
pub(crate) enum Outgoing {
    /// All of it.
    Whole(Full<Bytes>),
    /// Piece by piece.
    Streamed(Streamed),
}

/// A stored body. It ends well only if all of its bytes came; hyper ends a message whose body fails by ending the
/// connection or the stream, so that nobody takes a part for the whole.
pub(crate) struct Streamed {
    pieces: Pieces,
    left: u64,
    state: BodyState,
}

/// How the reading of a stored body stands. HTTP/2 keeps that to itself, so it is told here.
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

impl Outgoing {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Outgoing::Whole(Full::new(bytes))
    }

    /// A body of this many bytes; `state` is told how it goes.
    pub(crate) fn streamed(pieces: Pieces, length: u64, state: BodyState) -> Self {
        Outgoing::Streamed(Streamed { pieces, left: length, state })
    }

    /// How many bytes there are.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Outgoing::Whole(bytes) => bytes.size_hint().lower(),
            Outgoing::Streamed(streamed) => streamed.left,
        }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Outgoing::Whole(bytes) => Pin::new(bytes).poll_frame(cx).map_err(|never| match never {}),
            Outgoing::Streamed(streamed) => streamed.poll_piece(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Outgoing::Whole(bytes) => bytes.is_end_stream(),
            Outgoing::Streamed(streamed) => streamed.left == 0,
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
                Err(BodyError::Damaged("it did not end where it should".into()))
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
