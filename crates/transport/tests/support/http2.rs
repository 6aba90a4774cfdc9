//! A server that speaks HTTP/2.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

use super::request::Request;
use super::server::Seen;
use super::visitor::Visitor;

/// What a stream is answered with.
pub type Response = http::Response<BoxBody<Bytes, Infallible>>;

/// The most streams at once that the server allows.
pub const MAX_STREAMS: u32 = 1_000;

/// Speaks HTTP/2 with `visitor` and answers each request as `answer` says.
pub async fn serve<S, A, F>(visitor: Visitor<S>, answer: A)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Fn(Request) -> F + Clone + Send + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    serve_streams(visitor, MAX_STREAMS, answer).await;
}

/// Speaks HTTP/2 with `visitor`, allows this many streams at once and answers each request as `answer` says.
pub async fn serve_streams<S, A, F>(visitor: Visitor<S>, streams: u32, answer: A)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Fn(Request) -> F + Clone + Send + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let seen = visitor.seen.clone();
    let (stream, open) = visitor.into_stream();
    let service = service_fn(move |request: http::Request<Incoming>| {
        let (answer, seen) = (answer.clone(), seen.clone());
        async move {
            let request = received(request, &seen).await;
            Ok::<_, Infallible>(answer(request).await)
        }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(streams)
        .serve_connection(TokioIo::new(stream), service);
    // How a client ends a connection is not the server's concern here.
    drop(connection.await);
    drop(open);
}

/// Speaks HTTP/2 with `visitor`; never reads the bodies of requests for `/unread`, and answers all others.
pub async fn serve_others<S>(visitor: Visitor<S>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let seen = visitor.seen.clone();
    let (stream, open) = visitor.into_stream();
    let service = service_fn(move |request: http::Request<Incoming>| {
        let seen = seen.clone();
        async move {
            if request.uri().path() == "/unread" {
                seen.count(|counts| counts.requests += 1);
                std::future::pending::<()>().await;
            }
            received(request, &seen).await;
            Ok::<_, Infallible>(ok())
        }
    });
    let connection = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service);
    drop(connection.await);
    drop(open);
}

/// Speaks HTTP/2 with `visitor`; reads no body until it may go on, and says when it has the head of a request.
pub async fn serve_slowly<S>(visitor: Visitor<S>, begun: Arc<Notify>, go_on: Arc<Notify>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let seen = visitor.seen.clone();
    let (stream, open) = visitor.into_stream();
    let service = service_fn(move |request: http::Request<Incoming>| {
        let (seen, begun, go_on) = (seen.clone(), begun.clone(), go_on.clone());
        async move {
            begun.notify_one();
            go_on.notified().await;
            received(request, &seen).await;
            Ok::<_, Infallible>(ok())
        }
    });
    let connection = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service);
    drop(connection.await);
    drop(open);
}

/// A small answer.
pub fn ok() -> Response {
    http::Response::new(Full::new(Bytes::from_static(b"ok")).boxed())
}

/// An answer without an end; what is produced of it is counted.
pub fn endless(produced: Arc<std::sync::atomic::AtomicUsize>) -> Response {
    http::Response::new(Endless { produced }.boxed())
}

async fn received(request: http::Request<Incoming>, seen: &Seen) -> Request {
    let (head, body) = request.into_parts();
    let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let mut headers: Vec<_> = head.headers.iter().map(field).collect();
    headers.extend(head.uri.authority().map(|authority| (":authority".to_owned(), authority.to_string())));
    let target = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let mut request = Request { method: head.method.to_string(), target, headers, body: Vec::new() };
    let place = seen.begin(request.clone());
    if let Ok(body) = body.collect().await {
        request.body = body.to_bytes().to_vec();
        seen.complete(place, &request.body);
    }
    request
}

struct Endless {
    produced: Arc<std::sync::atomic::AtomicUsize>,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        const PIECE: &[u8] = &[b'x'; 16 * 1024];
        self.produced.fetch_add(PIECE.len(), std::sync::atomic::Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(PIECE)))))
    }
}
