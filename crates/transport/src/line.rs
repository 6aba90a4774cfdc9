//! The connection that a send uses: one of its own, or a stream of a shared one.

use std::future::Future;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::{Request, Response};
use tokio::sync::OwnedSemaphorePermit;

use crate::message::Message;
use crate::outgoing::Outgoing;
use crate::{http1, http2};

/// A connection, for one send.
pub(crate) enum Line {
    /// HTTP/1.1: nobody else uses it meanwhile.
    Own {
        /// The connection.
        connection: http1::Connection,
        /// The lane's permission to have it.
        place: OwnedSemaphorePermit,
        /// Whether it was used before.
        kept: bool,
    },
    /// HTTP/2: others may use it at the same time.
    Shared(Arc<http2::Connection>),
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
            Line::Shared(connection) => connection.send(message).await,
        }
    }

    /// Moves bytes, where nobody else does, until `work` is done.
    pub(crate) async fn drive<W: Future>(&mut self, work: W) -> W::Output {
        match self {
            Line::Own { connection, .. } => connection.drive(work).await,
            Line::Shared(_) => work.await,
        }
    }
}
