//! The HTTP client that S3 is spoken over: HTTP/1.1 with kept connections, and rustls on ring.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use redrive_trust::Authorities;
use tokio::time::{Instant, Sleep};

/// How long it may take to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take to begin, a part of an upload included, and then to go on.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an unused connection is kept: less than the servers do.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// The most unused connections that are kept.
const MAX_IDLE: usize = 16;

/// Makes the client.
#[derive(Debug)]
pub(crate) struct Connector {
    /// Whom it trusts.
    pub(crate) trusted: Authorities,
}

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let https = HttpsConnectorBuilder::new().with_tls_config(self.tls()?).https_or_http().enable_http1();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE)
            .build(https.wrap_connector(tcp));
        Ok(HttpClient::new(Hyper(client)))
    }
}

impl Connector {
    fn tls(&self) -> object_store::Result<rustls::ClientConfig> {
        self.trusted.client().map_err(|error| object_store::Error::Generic { store: "S3", source: error.into() })
    }
}

#[derive(Debug)]
struct Hyper(Client<HttpsConnector<TcpConnector>, HttpRequestBody>);

#[async_trait]
impl HttpService for Hyper {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, self.0.request(request)).await;
        let answer = answer.map_err(|late| HttpError::new(HttpErrorKind::Timeout, late))?;
        let answer = answer.map_err(|error| {
            let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
            HttpError::new(kind, error)
        })?;
        let broken = |error| HttpError::new(HttpErrorKind::Interrupted, error);
        Ok(answer.map(|body| HttpResponseBody::new(Steady::new(body.map_err(broken)))))
    }
}

/// A body that ends with an error when nothing of it comes for [`ANSWER_TIMEOUT`].
struct Steady<B> {
    body: B,
    patience: Pin<Box<Sleep>>,
}

impl<B> Steady<B> {
    fn new(body: B) -> Self {
        Steady { body, patience: Box::pin(tokio::time::sleep(ANSWER_TIMEOUT)) }
    }
}

impl<B: Body<Error = HttpError> + Unpin> Body for Steady<B> {
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
        let mut body = Steady::new(StreamBody::new(first.chain(stream::pending())));
        assert!(body.frame().await.is_some_and(|frame| frame.is_ok()));
        let begun = Instant::now();
        let stalled = body.frame().await.and_then(Result::err).map(|error| error.to_string());
        assert!(stalled.is_some_and(|told| told.contains("nothing more of the answer")));
        assert_eq!(begun.elapsed(), ANSWER_TIMEOUT);
    }
}
