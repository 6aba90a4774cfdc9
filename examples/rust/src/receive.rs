//! `orders receive`: applies each order once, although it may be delivered several times.

use std::convert::Infallible;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::redrive::call;

/// What the sender is told.
enum Reply {
    Applied,
    /// Come again, after this many seconds.
    Later(u64),
    Invalid(StatusCode),
}

/// Serves until the process ends.
pub(crate) async fn serve<T>(port: u16) -> Result<T> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.with_context(|| format!("listening on port {port}"))?;
    loop {
        let (stream, _) = listener.accept().await.context("accepting a connection")?;
        let service = service_fn(async |request| Ok::<_, Infallible>(response(receive(request).await)));
        tokio::spawn(async move {
            let http = hyper::server::conn::http1::Builder::new();
            if let Err(error) = http.serve_connection(TokioIo::new(stream), service).await {
                eprintln!("a connection ended: {error}");
            }
        });
    }
}

async fn receive(request: Request<Incoming>) -> Result<Reply> {
    let (head, body) = request.into_parts();
    if (&head.method, head.uri.path()) != (&Method::POST, "/orders") {
        return Ok(Reply::Invalid(StatusCode::NOT_FOUND));
    }
    // The same on every attempt.
    let Some(key) = head.headers.get("idempotency-key").and_then(|key| key.to_str().ok()) else {
        return Ok(Reply::Invalid(StatusCode::BAD_REQUEST));
    };
    let body = body.collect().await?.to_bytes();
    let event = format!("/inboxes/orders/events/{}", utf8_percent_encode(key, NON_ALPHANUMERIC));
    let begun = call("POST", &event, &[], &json!({ "mode": "begin", "leaseMs": 30_000 })).await?;
    match begun.status {
        201 => {}
        200 => return Ok(Reply::Applied),
        // 409: another process is applying it. The sender must come again, so this is a 503: most senders take 409 for
        // "never again".
        _ => return Ok(Reply::Later(begun.retry_after.unwrap_or(1))),
    }
    let owner = json!({ "executionId": begun.document["executionId"], "epoch": begun.document["epoch"] });
    if let Err(error) = apply(&body) {
        eprintln!("{key} was not applied: {error:#}");
        // The next attempt need not wait for the lease.
        call("POST", &format!("{event}/release"), &[], &owner).await?;
        return Ok(Reply::Later(1));
    }
    let confirmed = call("POST", &format!("{event}/confirm"), &[], &owner).await?;
    // 409: the lease was over and another process has taken over.
    Ok(if confirmed.status == 200 { Reply::Applied } else { Reply::Later(1) })
}

/// The effect comes here. If this process dies before it has confirmed, the event is new again when its lease is over: the
/// effect must be harmless if it happens twice.
fn apply(body: &[u8]) -> Result<()> {
    let order: Value = serde_json::from_slice(body)?;
    let field = |name: &str| order[name].as_str().with_context(|| format!("an order has a field {name}"));
    println!("{}: paid {}", field("order")?, field("amount")?);
    Ok(())
}

fn response(outcome: Result<Reply>) -> Response<Empty<Bytes>> {
    let reply = outcome.unwrap_or_else(|error| {
        // Without an answer of Redrive nothing is known to be applied: the sender comes again.
        eprintln!("{error:#}");
        Reply::Later(1)
    });
    let mut response = Response::new(Empty::new());
    *response.status_mut() = match reply {
        Reply::Applied => StatusCode::OK,
        Reply::Later(seconds) => {
            response.headers_mut().insert("retry-after", seconds.into());
            StatusCode::SERVICE_UNAVAILABLE
        }
        Reply::Invalid(status) => status,
    };
    response
}
