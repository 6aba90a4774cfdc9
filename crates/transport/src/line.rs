//! The connection that a send uses: one of its own, or a stream of a shared one.

use std::future::Future;

use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::{Request, Response};

use crate::message::Message;
use crate::outgoing::Outgoing;
use crate::{http1, http2};

/// A connection, for one send.
pub(crate) enum Line {
    /// HTTP/1.1: no other send uses it meanwhile.
    Own {
        /// The connection.
        connection: http1::Connection,
        /// Whether it was used before.
        kept: bool,
    },
    /// HTTP/2: others may use the connection at the same time.
    Shared(http2::Stream),
}

/// Why there is no answer.
pub(crate) struct Unsent {
    /// What happened.
    pub(crate) error: hyper::Error,
    /// The message, if not a byte of it was written.
    pub(crate) message: Option<Message>,
}

impl From<TrySendError<Request<Outgoing>>> for Unsent {
    fn from(mut error: TrySendError<Request<Outgoing>>) -> Self {
        let message = error.take_message().map(Box::new);
        Unsent { error: error.into_error(), message }
    }
}

impl Line {
    /// Sends `message` and waits for the head of the answer.
    pub(crate) async fn send(&mut self, message: Message) -> Result<Response<Incoming>, Unsent> {
        match self {
            Line::Own { connection, .. } => connection.send(message).await,
            Line::Shared(stream) => stream.send(message).await,
        }
    }

    /// Waits for `work`, the next piece of the answer, and moves the bytes if nothing else does.
    pub(crate) async fn drive<W: Future>(&mut self, work: W) -> W::Output {
        match self {
            Line::Own { connection, .. } => connection.drive(work).await,
            Line::Shared(stream) => stream.receive(work).await,
        }
    }
}
