//! The body of a request to the server: a document, or a file that is read as it is sent.

use std::fs::File;
use std::io::Read;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};

/// How much of a file is read at once.
const PIECE: u64 = 256 * 1024;

/// What is sent to the server.
#[derive(Debug)]
pub(super) enum Sent {
    Whole(Full<Bytes>),
    /// A file, and how many bytes of it are left.
    File(File, u64),
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

impl Body for Sent {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        match self.get_mut() {
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
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Sent::Whole(bytes) => bytes.size_hint(),
            Sent::File(_, left) => SizeHint::with_exact(*left),
        }
    }
}

fn read(file: &mut File, left: &mut u64) -> Result<Bytes, std::io::Error> {
    let mut piece = Vec::new();
    file.take(PIECE.min(*left)).read_to_end(&mut piece)?;
    if piece.is_empty() {
        return Err(std::io::Error::other("the file has become shorter"));
    }
    *left -= piece.len() as u64;
    Ok(piece.into())
}
