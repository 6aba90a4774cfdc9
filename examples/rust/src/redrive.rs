//! The calls of Redrive's API.

use std::time::Duration;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than the longest wait that is asked for.
const TIMEOUT: Duration = Duration::from_secs(40);

/// An answer of any status.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The header `Retry-After`, in seconds.
    pub(crate) retry_after: Option<u64>,
    pub(crate) document: Value,
}

impl Answer {
    /// Whether this is the problem of this name. Several problems share a status, so the type decides.
    pub(crate) fn is_problem(&self, name: &str) -> bool {
        self.document["type"].as_str().and_then(|kind| kind.rsplit('/').next()) == Some(name)
    }
}

/// Sends a request; an error means that there was no answer.
pub(crate) async fn call(method: &str, path: &str, headers: &[(&str, &str)], document: &Value) -> Result<Answer> {
    let server = std::env::var("REDRIVE").unwrap_or_else(|_| "http://127.0.0.1:8620".to_owned());
    let host = server.strip_prefix("http://").context("REDRIVE is not an http:// address")?;
    let mut request = Request::builder().method(method).uri(path).header("host", host);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = if document.is_null() { String::new() } else { document.to_string() };
    let request = request.header("content-type", "application/json").body(Full::new(Bytes::from(body)))?;
    timeout(TIMEOUT, exchange(host, request)).await.context("Redrive did not answer in time")?
}

async fn exchange(host: &str, request: Request<Full<Bytes>>) -> Result<Answer> {
    let stream = TcpStream::connect(host).await.with_context(|| format!("connecting to {host}"))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let (head, body) = sender.send_request(request).await?.into_parts();
    let bytes = body.collect().await?.to_bytes();
    Ok(Answer {
        status: head.status.as_u16(),
        retry_after: head.headers.get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok()),
        document: serde_json::from_slice(&bytes).unwrap_or_default(),
    })
}
