//! The body of a request to the server: a document, or a file that is streamed.
//!
//! An upload is sent with `Expect: 100-continue`: the server can refuse it before its body is sent, and the client
//! reads that answer.

use std::fs::File;
use std::io::Read;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{EXPECT, HeaderValue};
use tokio::sync::Notify;
use tokio::time::timeout;

/// How much of a file is read at once.
const PIECE: u64 = 256 * 1024;

/// How long to wait for `100 Continue`. Some servers never send it and accept the body all the same.
const CONTINUE_WITHIN: Duration = Duration::from_secs(1);

/// The body of a request.
pub(super) enum RequestBody {
    Whole(Full<Bytes>),
    /// A file, and how many bytes of it are left.
    File(File, u64),
    /// A body that is sent once the future is ready.
    After(Pin<Box<dyn Future<Output = ()> + Send>>, Box<RequestBody>),
}

/// What can be uploaded.
#[derive(Debug)]
pub enum Upload {
    /// Bytes in memory.
    Bytes(Vec<u8>),
    /// A file, and its length when it was opened.
    File(File, u64),
}

impl From<Upload> for RequestBody {
    fn from(upload: Upload) -> Self {
        match upload {
            Upload::Bytes(bytes) => RequestBody::Whole(Full::from(bytes)),
            Upload::File(file, length) => RequestBody::File(file, length),
        }
    }
}

/// Adds `Expect: 100-continue` to a request; its body is sent when the server asks for it.
pub(super) fn with_expect_continue(mut request: Request<RequestBody>) -> Request<RequestBody> {
    request.headers_mut().insert(EXPECT, HeaderValue::from_static("100-continue"));
    let asked = Arc::new(Notify::new());
    let tell = asked.clone();
    hyper::ext::on_informational(&mut request, move |_| tell.notify_one());
    request.map(|body| {
        let waiting = async move { drop(timeout(CONTINUE_WITHIN, asked.notified()).await) };
        RequestBody::After(Box::pin(waiting), Box::new(body))
    })
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let sent = self.get_mut();
        if let RequestBody::After(waiting, _) = sent {
            ready!(waiting.as_mut().poll(cx));
            if let RequestBody::After(_, body) = std::mem::replace(sent, RequestBody::Whole(Full::default())) {
                *sent = *body;
            }
        }
        match sent {
            RequestBody::After(_, body) => Pin::new(body.as_mut()).poll_frame(cx),
            RequestBody::Whole(bytes) => Pin::new(bytes).poll_frame(cx).map_err(|never| match never {}),
            RequestBody::File(_, 0) => Poll::Ready(None),
            // Blocking is fine: nothing else runs on this thread.
            RequestBody::File(file, left) => Poll::Ready(Some(read(file, left).map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            RequestBody::Whole(bytes) => bytes.is_end_stream(),
            RequestBody::File(_, left) => *left == 0,
            RequestBody::After(_, body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            RequestBody::Whole(bytes) => bytes.size_hint(),
            RequestBody::File(_, left) => SizeHint::with_exact(*left),
            RequestBody::After(_, body) => body.size_hint(),
        }
    }
}

fn read(file: &mut File, left: &mut u64) -> Result<Bytes, std::io::Error> {
    let mut piece = Vec::new();
    file.take(PIECE.min(*left)).read_to_end(&mut piece)?;
    if piece.is_empty() {
        return Err(std::io::Error::other("the file became shorter while it was read"));
    }
    *left -= piece.len() as u64;
    Ok(piece.into())
}
