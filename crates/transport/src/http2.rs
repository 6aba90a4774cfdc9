//! An HTTP/2 connection, shared by the sends of a tenant to an origin.
//!
//! A send takes one of its streams first. A connection whose peer allows no further stream has none to give, and the
//! send opens another connection: it must not wait for the streams of other lanes.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hyper::Response;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use redrive_core::Answer;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::checked_out::SendFailure;
use crate::message::Message;
use crate::request_body::RequestBody;

/// The most streams at once of a connection, whatever its peer allows.
pub(crate) const MAX_STREAMS: usize = 256;
/// The most streams at once of a connection whose peer has not yet said how many it allows. RFC 9113 asks peers to
/// allow at least as many.
pub(crate) const INITIAL_STREAMS: usize = 100;
/// What a peer may send on one stream before we read: the most that is kept of an answer, and enough above it to see
/// that there is more.
const STREAM_WINDOW: u32 = 2 * Answer::BODY_LIMIT as u32;
/// What a peer may send on all streams before we read. All streams may fill their windows: an answer that is read
/// slowly, because it goes to object storage, does not keep the others from arriving.
const CONNECTION_WINDOW: u32 = MAX_STREAMS as u32 * STREAM_WINDOW;
/// The most bytes of an answer's head.
const HEAD_LIMIT: u32 = 64 * 1024;
/// The count of streams in use of a connection that one send has for itself.
const EXCLUSIVE: usize = usize::MAX;

/// How a send uses a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Beside other sends.
    Shared,
    /// Alone. While a peer does not read a large body, nothing else can be sent on the connection.
    Exclusive,
}

/// An open HTTP/2 connection. It closes when it is dropped and its last stream has ended.
pub(crate) struct Connection {
    requests: http2::SendRequest<RequestBody>,
    driver: SharedDriver,
    streams: AtomicUsize,
    /// How often something arrived on any stream.
    arrivals: AtomicUsize,
}

/// A stream of a connection, from before it is opened until it has ended.
pub(crate) struct Stream {
    connection: Arc<Connection>,
    usage: Use,
    /// The connection's arrivals when something last arrived here.
    arrivals: usize,
}

/// Hands requests to the connection, and knows how many streams the peer allows.
trait Drive: Future<Output = hyper::Result<()>> + Send + Unpin {
    fn max_streams(&self) -> usize;
}

impl<I> Drive for http2::Connection<TokioIo<I>, RequestBody, TokioExecutor>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    fn max_streams(&self) -> usize {
        self.current_max_send_streams()
    }
}

/// The driver until it ends. Dropping it then hands back the messages that it never took.
#[derive(Clone)]
struct SharedDriver(Arc<Mutex<Option<Box<dyn Drive>>>>);

impl SharedDriver {
    fn lock(&self) -> MutexGuard<'_, Option<Box<dyn Drive>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Future for SharedDriver {
    type Output = hyper::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut driver = self.lock();
        let polled = driver.as_mut().map_or(Poll::Ready(Ok(())), |driver| Pin::new(&mut **driver).poll(cx));
        if polled.is_ready() {
            *driver = None;
        }
        polled
    }
}

impl Connection {
    /// Speaks HTTP/2 on `io`. A task of the connection's own moves the bytes.
    pub(crate) async fn handshake<I>(io: I) -> hyper::Result<Arc<Self>>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (requests, driver) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_max_send_streams(INITIAL_STREAMS)
            .max_header_list_size(HEAD_LIMIT)
            .handshake(TokioIo::new(io))
            .await?;
        let driver = SharedDriver(Arc::new(Mutex::new(Some(Box::new(driver)))));
        let moving = driver.clone();
        tokio::spawn(async move {
            if let Err(error) = moving.await {
                // The sends under way have been told, each in its own terms.
                tracing::debug!(%error, "http/2 connection ended");
            }
        });
        Ok(Arc::new(Connection { requests, driver, streams: AtomicUsize::new(0), arrivals: AtomicUsize::new(0) }))
    }

    /// A stream to use in this way, if there is one. A connection that is not used has one for every use.
    pub(crate) fn stream(self: &Arc<Self>, usage: Use) -> Option<Stream> {
        let most = match usage {
            Use::Exclusive => 1,
            Use::Shared => self.max_streams(),
        };
        let taken = self.streams.fetch_update(Ordering::AcqRel, Ordering::Acquire, |streams| match usage {
            _ if streams >= most => None,
            Use::Exclusive => Some(EXCLUSIVE),
            Use::Shared => Some(streams + 1),
        });
        let arrivals = self.arrivals.load(Ordering::Acquire);
        taken.is_ok().then(|| Stream { connection: self.clone(), usage, arrivals })
    }

    /// The most streams at once.
    pub(crate) fn max_streams(&self) -> usize {
        self.driver.lock().as_ref().map_or(1, |driver| driver.max_streams().clamp(1, MAX_STREAMS))
    }

    /// Whether no stream is in use.
    pub(crate) fn is_idle(&self) -> bool {
        self.streams.load(Ordering::Acquire) == 0
    }

    /// Whether nothing more can be sent on it.
    pub(crate) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }
}

impl Stream {
    /// Sends `message`, which must be in the form of HTTP/2, and waits for the head of the answer.
    pub(crate) async fn send(&mut self, message: Message) -> Result<Response<Incoming>, SendFailure> {
        let answer = self.connection.requests.clone().try_send_request(*message).await.map_err(SendFailure::from)?;
        self.note_arrival();
        Ok(answer)
    }

    /// Waits for `work`, the next piece of the answer.
    pub(crate) async fn receive<W: Future>(&mut self, work: W) -> W::Output {
        let piece = work.await;
        self.note_arrival();
        piece
    }

    /// Whether nothing has arrived on the whole connection for as long as nothing has arrived here.
    pub(crate) fn is_connection_silent(&self) -> bool {
        self.connection.arrivals.load(Ordering::Acquire) == self.arrivals
    }

    /// The connection that it is a stream of.
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    fn note_arrival(&mut self) {
        self.arrivals = self.connection.arrivals.fetch_add(1, Ordering::AcqRel) + 1;
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        match self.usage {
            Use::Exclusive => self.connection.streams.store(0, Ordering::Release),
            Use::Shared => drop(self.connection.streams.fetch_sub(1, Ordering::AcqRel)),
        }
    }
}
