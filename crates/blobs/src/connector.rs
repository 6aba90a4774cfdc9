//! The HTTP client for S3: hyper's pool of HTTP/1.1 connections, opened by `redrive-dial`.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use hyper::http::Uri;
use hyper::http::uri::Scheme;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use redrive_dial::{Dialer, Endpoint, InvalidHost, Stream};
use tokio::time::{Instant, Sleep};
use tower_service::Service;

/// How long it may take to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take to begin, a part of an upload included, and then to go on.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an unused connection is kept: less than the servers do.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// The most unused connections that are kept.
const MAX_IDLE: usize = 16;

/// Makes the HTTP client that object_store uses.
pub(crate) struct Connector {
    /// Opens its connections.
    pub(crate) dialer: Arc<Dialer>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE)
            .build(DialService(self.dialer.clone()));
        Ok(HttpClient::new(PooledClient(client)))
    }
}

/// Opens the connections of hyper's pool.
#[derive(Clone)]
struct DialService(Arc<Dialer>);

impl Service<Uri> for DialService {
    type Response = TokioIo<Stream>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dialer = self.0.clone();
        Box::pin(async move {
            let endpoint = endpoint(&uri)?;
            Ok(TokioIo::new(dialer.dial(&endpoint, CONNECT_TIMEOUT, |_| ()).await?))
        })
    }
}

fn endpoint(uri: &Uri) -> Result<Endpoint, InvalidHost> {
    let is_secure = uri.scheme() == Some(&Scheme::HTTPS);
    let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
    Endpoint::new(uri.host().ok_or(InvalidHost)?, port, is_secure)
}

#[derive(Debug)]
struct PooledClient(Client<DialService, HttpRequestBody>);

#[async_trait]
impl HttpService for PooledClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, self.0.request(request)).await;
        let answer = answer.map_err(|late| HttpError::new(HttpErrorKind::Timeout, late))?;
        let answer = answer.map_err(|error| {
            let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
            HttpError::new(kind, error)
        })?;
        let broken = |error| HttpError::new(HttpErrorKind::Interrupted, error);
        Ok(answer.map(|body| HttpResponseBody::new(IdleTimeoutBody::new(body.map_err(broken)))))
    }
}

/// A body that ends with an error when nothing of it comes for [`ANSWER_TIMEOUT`].
struct IdleTimeoutBody<B> {
    body: B,
    patience: Pin<Box<Sleep>>,
}

impl<B> IdleTimeoutBody<B> {
    fn new(body: B) -> Self {
        IdleTimeoutBody { body, patience: Box::pin(tokio::time::sleep(ANSWER_TIMEOUT)) }
    }
}

impl<B: Body<Error = HttpError> + Unpin> Body for IdleTimeoutBody<B> {
    type Data = B::Data;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, HttpError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.patience.as_mut().reset(Instant::now() + ANSWER_TIMEOUT);
            return Poll::Ready(frame);
        }
        self.patience.as_mut().poll(context).map(|()| {
            let late = std::io::Error::other(format!("nothing more of the answer within {ANSWER_TIMEOUT:?}"));
            Some(Err(HttpError::new(HttpErrorKind::Timeout, late)))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::{StreamExt, stream};
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_stalls_ends_with_an_error() {
        let first = stream::iter([Ok(Frame::data(Bytes::from_static(b"a")))]);
        let mut body = IdleTimeoutBody::new(StreamBody::new(first.chain(stream::pending())));
        assert!(body.frame().await.is_some_and(|frame| frame.is_ok()));
        let begun = Instant::now();
        let stalled = body.frame().await.and_then(Result::err).map(|error| error.to_string());
        assert!(stalled.is_some_and(|told| told.contains("nothing more of the answer")));
        assert_eq!(begun.elapsed(), ANSWER_TIMEOUT);
    }
}
