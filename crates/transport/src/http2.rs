//! An HTTP/2 connection, shared by every send of a lane to an origin.

use hyper::Response;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use redrive_core::Answer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OwnedSemaphorePermit;

use crate::line::Unsent;
use crate::message::Message;
use crate::outgoing::Outgoing;

/// What a peer may send on one stream before we read: the most that is kept of an answer, and enough above it to see
/// that there is more.
const STREAM_WINDOW: u32 = 2 * Answer::BODY_LIMIT as u32;
/// What a peer may send on all streams before we read.
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
/// The most bytes of an answer's head.
const HEAD_LIMIT: u32 = 64 * 1024;

/// An open HTTP/2 connection. It closes when it is dropped and its last stream has ended.
pub(crate) struct Connection {
    requests: http2::SendRequest<Outgoing>,
}

/// A connection that nobody moves bytes on yet.
pub(crate) struct Unstarted {
    connection: Connection,
    driver: std::pin::Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>,
}

impl Unstarted {
    /// Moves bytes from now on, in a task of the connection's own. It occupies `place` until it is closed.
    pub(crate) fn start(self, place: OwnedSemaphorePermit) -> Connection {
        let driver = self.driver;
        tokio::spawn(async move {
            if let Err(error) = driver.await {
                // The sends under way have been told, each in its own terms.
                tracing::debug!(%error, "http/2 connection ended");
            }
            drop(place);
        });
        self.connection
    }
}

impl Connection {
    /// Speaks HTTP/2 on `io`.
    pub(crate) async fn handshake<I>(io: I) -> hyper::Result<Unstarted>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (requests, driver) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEAD_LIMIT)
            .handshake(TokioIo::new(io))
            .await?;
        Ok(Unstarted { connection: Connection { requests }, driver: Box::pin(driver) })
    }

    /// Sends `message`, which must be in the form of HTTP/2, on a stream of its own and waits for the head of the answer.
    pub(crate) async fn send(&self, message: Message) -> Result<Response<Incoming>, Unsent> {
        self.requests.clone().try_send_request(*message).await.map_err(Unsent::from)
    }

    /// Whether nothing more can be sent on it.
    pub(crate) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }
}
