//! The connection that a send uses: an exclusive one, or a stream of a shared one.

use std::future::Future;

use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::{Request, Response};

use crate::message::Message;
use crate::request_body::RequestBody;
use crate::{http1, http2};

/// A connection that one send has checked out of the pool.
pub(crate) enum CheckedOut {
    /// HTTP/1.1: no other send uses it meanwhile.
    Exclusive {
        /// The connection.
        connection: http1::Connection,
        /// Whether it was used before.
        kept: bool,
    },
    /// HTTP/2: others may use the connection at the same time.
    Shared(http2::Stream),
}

/// Why there is no answer.
pub(crate) struct SendFailure {
    /// What happened.
    pub(crate) error: hyper::Error,
    /// The message, if not a byte of it was written.
    pub(crate) message: Option<Message>,
}

impl From<TrySendError<Request<RequestBody>>> for SendFailure {
    fn from(mut error: TrySendError<Request<RequestBody>>) -> Self {
        let message = error.take_message().map(Box::new);
        SendFailure { error: error.into_error(), message }
    }
}

impl CheckedOut {
    /// Sends `message` and waits for the head of the answer.
    pub(crate) async fn send(&mut self, message: Message) -> Result<Response<Incoming>, SendFailure> {
        match self {
            CheckedOut::Exclusive { connection, .. } => connection.send(message).await,
            CheckedOut::Shared(stream) => stream.send(message).await,
        }
    }

    /// Waits for `work`, the next piece of the answer. An exclusive connection is polled meanwhile.
    pub(crate) async fn drive<W: Future>(&mut self, work: W) -> W::Output {
        match self {
            CheckedOut::Exclusive { connection, .. } => connection.drive(work).await,
            CheckedOut::Shared(stream) => stream.receive(work).await,
        }
    }
}
