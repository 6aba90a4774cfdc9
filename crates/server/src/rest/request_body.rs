//! A request's body, lent to its handler, and the rest that the handler does not read.
//!
//! Over HTTP/1, closing a connection with unread bytes resets it, and the caller may lose the answer. So before a
//! refusal is sent, the rest of the body is read and discarded, within bounds. Over HTTP/2 a stream can be ended by
//! itself.

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

/// A caller that sends nothing for this long is taken to wait for the answer.
const STALL_TIMEOUT: Duration = Duration::from_secs(1);

/// The body that the handler reads. When it is dropped, the rest goes to [`UnreadBody`].
pub(crate) struct RequestBody {
    /// Present until its end.
    body: Option<Incoming>,
    /// Receives the unread rest.
    rest: Option<oneshot::Sender<Incoming>>,
    /// Whether the caller sends without waiting for `100 Continue`.
    sends_unasked: bool,
}

/// The part of the body that the handler did not read.
pub(crate) struct UnreadBody(Option<oneshot::Receiver<Incoming>>);

/// Lends a request's body.
pub(crate) fn lend(parts: &Parts, body: Incoming) -> (RequestBody, UnreadBody) {
    let sends_unasked = parts.headers.get(EXPECT).is_none_or(|expected| !asks_first(expected));
    if body.is_end_stream() || parts.version == Version::HTTP_2 {
        return (RequestBody { body: Some(body), rest: None, sends_unasked }, UnreadBody(None));
    }
    let (rest, left) = oneshot::channel();
    (RequestBody { body: Some(body), rest: Some(rest), sends_unasked }, UnreadBody(Some(left)))
}

fn asks_first(expected: &HeaderValue) -> bool {
    expected.as_bytes().eq_ignore_ascii_case(b"100-continue")
}

impl RequestBody {
    /// No body, for a handler that reads none. Whatever the caller sends is not held while the handler runs.
    pub(crate) fn none() -> Self {
        RequestBody { body: None, rest: None, sends_unasked: true }
    }
}

impl UnreadBody {
    /// Reads and discards the rest: at most `most` bytes, for at most `within`.
    #[expect(clippy::disallowed_methods, reason = "how long a caller may take to send is told by the machine's clock")]
    pub(crate) async fn discard(self, most: u64, within: Duration) {
        let Some(left) = self.0 else { return };
        let discarding = async {
            // A body that was read to its end is not sent back.
            let Ok(mut body) = left.await else { return };
            let mut bytes = 0;
            while bytes <= most {
                match tokio::time::timeout(STALL_TIMEOUT, body.frame()).await {
                    Ok(Some(Ok(frame))) => bytes += frame.data_ref().map_or(0, |data| data.len() as u64),
                    _ => return,
                }
            }
        };
        if tokio::time::timeout(within, discarding).await.is_err() {
            tracing::debug!("a caller kept sending a refused body");
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let lent = self.get_mut();
        // Polling makes hyper send `100 Continue`.
        lent.sends_unasked = true;
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

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let (Some(body), Some(rest), true) = (self.body.take(), self.rest.take(), self.sends_unasked) {
            // If the receiver is gone, the body is dropped.
            drop(rest.send(body));
        }
    }
}
