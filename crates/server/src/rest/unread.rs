//! A request's body, lent to its handler, and what the handler leaves of it.
//!
//! Over HTTP/1 a caller that is still sending does not hear a refusal: closing a connection with bytes unread resets it,
//! and what the caller had been told may go with it. So what still comes is read and discarded before a refusal, within
//! bounds. Over HTTP/2 a stream ends by itself.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::EXPECT;
use http::request::Parts;
use http::{HeaderValue, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::oneshot;

/// A caller that sends nothing for this long waits for its answer.
const STANDS_STILL: Duration = Duration::from_secs(1);

/// The body, as the handler has it.
pub(crate) struct Lent {
    /// There until it has come to its end.
    body: Option<Incoming>,
    /// Who gets back what is left.
    back: Option<oneshot::Sender<Incoming>>,
    /// Whether the caller sends without being asked to.
    comes_by_itself: bool,
}

/// What the handler leaves.
pub(crate) struct Unread(Option<oneshot::Receiver<Incoming>>);

/// Lends a request's body.
pub(crate) fn lend(parts: &Parts, body: Incoming) -> (Lent, Unread) {
    let comes_by_itself = parts.headers.get(EXPECT).is_none_or(|expected| !asks_first(expected));
    if body.is_end_stream() || parts.version == Version::HTTP_2 {
        return (Lent { body: Some(body), back: None, comes_by_itself }, Unread(None));
    }
    let (back, left) = oneshot::channel();
    (Lent { body: Some(body), back: Some(back), comes_by_itself }, Unread(Some(left)))
}

fn asks_first(expected: &HeaderValue) -> bool {
    expected.as_bytes().eq_ignore_ascii_case(b"100-continue")
}

impl Lent {
    /// No body, for a handler that reads none: what a caller sends all the same is not kept while the handler works.
    pub(crate) fn none() -> Self {
        Lent { body: None, back: None, comes_by_itself: true }
    }
}

impl Unread {
    /// Reads and discards what still comes: no more than `most` bytes, and for no longer than `within`.
    #[expect(clippy::disallowed_methods, reason = "how long a caller may take to send is told by the machine's clock")]
    pub(crate) async fn discard(self, most: u64, within: Duration) {
        let Some(left) = self.0 else { return };
        let discarding = async {
            // Nobody sends what has come to its end.
            let Ok(mut body) = left.await else { return };
            let mut bytes = 0;
            while bytes <= most {
                match tokio::time::timeout(STANDS_STILL, body.frame()).await {
                    Ok(Some(Ok(frame))) => bytes += frame.data_ref().map_or(0, |data| data.len() as u64),
                    _ => return,
                }
            }
        };
        if tokio::time::timeout(within, discarding).await.is_err() {
            tracing::debug!("a caller went on sending what was refused");
        }
    }
}

impl Body for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let lent = self.get_mut();
        // Whoever waits to be asked is asked by this.
        lent.comes_by_itself = true;
        let Some(body) = &mut lent.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = polled {
            lent.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(body), Some(back), true) = (self.body.take(), self.back.take(), self.comes_by_itself) {
            // Where nobody waits for it, it goes the way of every body.
            drop(back.send(body));
        }
    }
}
