//! One request to the receiver, over a connection that is kept.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::http::uri::{PathAndQuery, Uri};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use redrive_dial::{DialError, Dialer, Endpoint, Stream};
use tokio::time::{Instant, timeout_at};

use crate::settings::{InvalidReceiver, Settings};

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const OWN_USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("redrive/", env!("CARGO_PKG_VERSION")));

/// The most bytes of an answer that are read.
const MOST_ANSWER: usize = 64 * 1024;

/// Sends requests, one at a time.
pub(crate) struct Client {
    dialer: Dialer,
    endpoint: Endpoint,
    path: PathAndQuery,
    fields: HeaderMap,
    timeout: Duration,
    /// The connection of the request before, if it can still be used.
    connection: Option<SendRequest<Full<Bytes>>>,
}

/// What the receiver answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// How long it asks to wait before the next try.
    pub(crate) retry_after: Option<Duration>,
    /// Empty if it is too long or breaks off: the status alone says whether the spans were taken.
    pub(crate) body: Bytes,
}

/// Why there is no answer. The message names host and port, and no header field.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// No connection.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The connection broke.
    #[error("the exchange with the receiver of spans failed")]
    Exchange(#[from] hyper::Error),
    /// No answer in time.
    #[error("the receiver of spans did not answer within {0:?}")]
    Late(Duration),
}

impl Client {
    pub(crate) fn new(settings: &Settings, dialer: Dialer) -> Result<Self, InvalidReceiver> {
        let mut fields = settings.headers.0.clone();
        fields.insert(HOST, settings.receiver.host_field().ok_or(InvalidReceiver::NoUrl)?);
        fields.insert(CONTENT_TYPE, PROTOBUF);
        fields.insert(ACCEPT, PROTOBUF);
        fields.entry(USER_AGENT).or_insert(OWN_USER_AGENT);
        Ok(Client {
            dialer,
            endpoint: settings.receiver.endpoint()?,
            path: settings.receiver.path(),
            fields,
            timeout: settings.timeout,
            connection: None,
        })
    }

    /// Sends one request. A failure closes the connection.
    pub(crate) async fn post(&mut self, body: Bytes) -> Result<Answer, Failure> {
        let until = Instant::now() + self.timeout;
        // Out of `self` until it has proved to be usable, also if this is dropped on the way.
        let kept = self.connection.take();
        let answered = timeout_at(until, self.exchange(kept, body)).await;
        let (answer, connection) = answered.map_err(|_| Failure::Late(self.timeout))??;
        let (head, body) = answer.into_parts();
        let seconds = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        // The spans were taken or not, whatever becomes of the rest of the answer: it is no reason to send them again.
        let body = match timeout_at(until, Limited::new(body, MOST_ANSWER).collect()).await {
            Ok(Ok(body)) => {
                self.connection = Some(connection);
                body.to_bytes()
            }
            Ok(Err(_)) | Err(_) => Bytes::new(),
        };
        Ok(Answer { status: head.status.as_u16(), retry_after: seconds.map(Duration::from_secs), body })
    }

    async fn exchange(
        &self,
        kept: Option<SendRequest<Full<Bytes>>>,
        body: Bytes,
    ) -> Result<(Response<Incoming>, SendRequest<Full<Bytes>>), Failure> {
        let mut connection = match self.usable(kept).await {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from(self.path.clone());
        *request.headers_mut() = self.fields.clone();
        let answer = connection.send_request(request).await?;
        Ok((answer, connection))
    }

    /// The connection that was kept, unless the receiver has closed it.
    async fn usable(&self, kept: Option<SendRequest<Full<Bytes>>>) -> Option<SendRequest<Full<Bytes>>> {
        let mut connection = kept?;
        connection.ready().await.ok()?;
        Some(connection)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        match self.dialer.dial(&self.endpoint, self.timeout, |_| ()).await? {
            Stream::Tcp(stream) => handshake(stream).await,
            Stream::Tls(stream) => handshake(stream).await,
        }
    }
}

async fn handshake<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, Failure>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "the connection to the receiver of spans ended");
        }
    });
    Ok(sender)
}
