//! A small HTTP server and client.

use std::convert::Infallible;
use std::future::Future;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};

/// A request that was read to its end.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) content_type: String,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) body: Bytes,
}

/// A response.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) is_replay: bool,
    pub(crate) body: Value,
}

impl Response {
    pub(crate) fn new(status: u16, body: Value) -> Self {
        Response { status, is_replay: false, body }
    }

    pub(crate) fn error(status: u16, message: &str) -> Self {
        Response::new(status, serde_json::json!({ "error": message }))
    }
}

/// Serves until the process ends. A handler's error is a 500.
pub(crate) async fn serve<F>(listen: &str, handler: impl Fn(Request) -> F + Clone + Send + Sync + 'static) -> Result<()>
where
    F: Future<Output = Result<Response>> + Send + 'static,
{
    let listener = TcpListener::bind(listen).await.with_context(|| format!("listening on {listen}"))?;
    loop {
        let (stream, _) = listener.accept().await.context("accepting a connection")?;
        let handler = handler.clone();
        let answer = service_fn(move |request| {
            let handler = handler.clone();
            async move { Ok::<_, Infallible>(written(answered(request, handler).await)) }
        });
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
            if let Err(error) = connection.await {
                eprintln!("a connection ended: {error}");
            }
        });
    }
}

async fn answered<F>(request: hyper::Request<Incoming>, handler: impl Fn(Request) -> F) -> Response
where
    F: Future<Output = Result<Response>>,
{
    let outcome = async { handler(read(request).await?).await };
    outcome.await.unwrap_or_else(|error| {
        eprintln!("{error:#}");
        Response::error(500, &format!("{error:#}"))
    })
}

async fn read(request: hyper::Request<Incoming>) -> Result<Request> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (content_type, idempotency_key) = (header("content-type").unwrap_or_default(), header("idempotency-key"));
    let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
    let body = request.into_body().collect().await.context("reading a request")?.to_bytes();
    Ok(Request { method, path, content_type, idempotency_key, body })
}

fn written(response: Response) -> hyper::Response<Full<Bytes>> {
    let mut written = hyper::Response::new(Full::new(Bytes::from(response.body.to_string())));
    *written.status_mut() = hyper::StatusCode::from_u16(response.status).unwrap_or_default();
    let headers = written.headers_mut();
    headers.insert("content-type", hyper::header::HeaderValue::from_static("application/json"));
    if response.is_replay {
        headers.insert("idempotent-replayed", hyper::header::HeaderValue::from_static("true"));
    }
    written
}

/// Sends a JSON document; returns the status and the document that came back.
pub(crate) async fn post(origin: &str, path: &str, key: Option<&str>, body: &Value) -> Result<(u16, Value)> {
    let host = origin.strip_prefix("http://").unwrap_or(origin);
    let stream = TcpStream::connect(host).await.with_context(|| format!("connecting to {host}"))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut request = hyper::Request::post(path).header("host", host).header("content-type", "application/json");
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let request = request.body(Full::new(Bytes::from(body.to_string())))?;
    let response = sender.send_request(request).await.with_context(|| format!("calling {origin}{path}"))?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}
