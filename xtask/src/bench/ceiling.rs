//! The ceiling: a forwarder on the HTTP stack that Redrive uses (hyper), with nothing between its two sides.
//!
//! It reads a POST, forwards the body over a kept connection, and answers 201 once the target has answered. That is the
//! least that any service on this stack must do per task, so it bounds what Redrive can reach here. It answers after
//! forwarding, because then its count of answers is its count of deliveries. With hundreds of callers waiting, that
//! costs it latency and no throughput.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

/// The forwarder's options.
#[derive(Debug, Args)]
pub struct Options {
    /// Where to forward requests to
    #[arg(long)]
    target: SocketAddr,
}

/// Forwards until it is killed.
pub fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("listening on http://{}", listener.local_addr()?);
        let kept = Arc::new(Kept { target: options.target, idle: Mutex::default() });
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let kept = Arc::clone(&kept);
            tokio::spawn(async move {
                let service = service_fn(|request| forward(request, &kept));
                let connection = hyper::server::conn::http1::Builder::new();
                if let Err(error) = connection.serve_connection(TokioIo::new(stream), service).await {
                    eprintln!("a caller's connection ended: {error}");
                }
            });
        }
    })
}

async fn forward(request: Request<Incoming>, kept: &Kept) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, text) = match pass_on(request, kept).await {
        Ok(()) => (StatusCode::CREATED, Bytes::from_static(b"{}")),
        Err(error) => (StatusCode::BAD_GATEWAY, Bytes::from(format!("{error:#}"))),
    };
    let mut response = Response::new(Full::new(text));
    *response.status_mut() = status;
    Ok(response)
}

async fn pass_on(request: Request<Incoming>, kept: &Kept) -> Result<()> {
    let body = request.into_body().collect().await?.to_bytes();
    let mut connection = kept.take().await?;
    let request = Request::post("/")
        .header("host", "localhost")
        .header("content-type", "text/plain")
        .body(Full::new(body))
        .context("making a request")?;
    let response = connection.send_request(request).await?;
    let status = response.status();
    response.into_body().collect().await?;
    kept.put_back(connection);
    if !status.is_success() {
        bail!("the target answered {status}");
    }
    Ok(())
}

/// Connections to the target, the one used last taken first. There are never more than callers.
struct Kept {
    target: SocketAddr,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

impl Kept {
    async fn take(&self) -> Result<SendRequest<Full<Bytes>>> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(mut connection) = idle {
            connection.ready().await?;
            return Ok(connection);
        }
        let stream = TcpStream::connect(self.target).await?;
        stream.set_nodelay(true)?;
        let (connection, driver) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        Ok(connection)
    }

    fn put_back(&self, connection: SendRequest<Full<Bytes>>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}
