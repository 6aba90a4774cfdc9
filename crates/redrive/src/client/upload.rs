//! The body of a request to the server: a document, or a file that is read as it is sent.
//!
//! An upload is not sent before the server has asked for it (`Expect: 100-continue`): one that is refused is refused
//! before it was sent for nothing, and the refusal is heard.

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

/// How long the server may take to ask for an upload. Some never do, and take it all the same.
const ASKED_WITHIN: Duration = Duration::from_secs(1);

/// What is sent to the server.
pub(super) enum Sent {
    Whole(Full<Bytes>),
    /// A file, and how many bytes of it are left.
    File(File, u64),
    /// What is sent once this is over.
    After(Pin<Box<dyn Future<Output = ()> + Send>>, Box<Sent>),
}

/// What can be uploaded.
#[derive(Debug)]
pub enum Upload {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A file's bytes; so many, when it was opened.
    File(File, u64),
}

impl From<Upload> for Sent {
    fn from(upload: Upload) -> Self {
        match upload {
            Upload::Bytes(bytes) => Sent::Whole(Full::from(bytes)),
            Upload::File(file, length) => Sent::File(file, length),
        }
    }
}

/// Makes a request of which the body is sent when the server asks for it.
pub(super) fn when_asked(mut request: Request<Sent>) -> Request<Sent> {
    request.headers_mut().insert(EXPECT, HeaderValue::from_static("100-continue"));
    let asked = Arc::new(Notify::new());
    let tell = asked.clone();
    hyper::ext::on_informational(&mut request, move |_| tell.notify_one());
    request.map(|body| {
        let waiting = async move { drop(timeout(ASKED_WITHIN, asked.notified()).await) };
        Sent::After(Box::pin(waiting), Box::new(body))
    })
}

impl Body for Sent {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let sent = self.get_mut();
        if let Sent::After(waiting, _) = sent {
            ready!(waiting.as_mut().poll(cx));
            if let Sent::After(_, body) = std::mem::replace(sent, Sent::Whole(Full::default())) {
                *sent = *body;
            }
        }
        match sent {
            Sent::After(_, body) => Pin::new(body.as_mut()).poll_frame(cx),
            Sent::Whole(bytes) => Pin::new(bytes).poll_frame(cx).map_err(|never| match never {}),
            Sent::File(_, 0) => Poll::Ready(None),
            // Nothing else runs here that a read of a file could hold up.
            Sent::File(file, left) => Poll::Ready(Some(read(file, left).map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Sent::Whole(bytes) => bytes.is_end_stream(),
            Sent::File(_, left) => *left == 0,
            Sent::After(_, body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Sent::Whole(bytes) => bytes.size_hint(),
            Sent::File(_, left) => SizeHint::with_exact(*left),
            Sent::After(_, body) => body.size_hint(),
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
