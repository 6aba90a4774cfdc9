//! The server itself: takes connections and requests, and prints a text for each request.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::arrival::{Arrival, SHOWN_BODY};
use super::plan::Plan;
use crate::output::{Output, notice};

/// The most connections at a time; more wait until one ends.
const MOST_CONNECTIONS: usize = 512;
/// The most texts that wait to be printed; requests wait until there is room.
const MOST_UNPRINTED: usize = 1_024;
/// How long the head of a request may take, and how long a connection may be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause after a connection could not be taken, for example because of too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What all connections share.
struct Shared {
    plan: Plan,
    shows_bodies: bool,
    requests: AtomicU64,
    texts: Sender<String>,
}

/// Serves until Ctrl-C or SIGTERM.
pub(super) async fn serve(address: SocketAddr, plan: Plan, shows_bodies: bool) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let listener = TcpListener::bind(address).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => {
            anyhow!("cannot listen on {address}: the port is in use; choose another with --listen 127.0.0.1:PORT")
        }
        _ => anyhow!("cannot listen on {address}: {error}"),
    })?;
    let address = listener.local_addr().context("cannot read the listener's address")?;
    let output = Output::standard();
    output.line(format!("the target listens on http://{address} and {plan}; Ctrl-C ends it"))?;
    let (texts, printed) = channel(MOST_UNPRINTED);
    let shared = Arc::new(Shared { plan, shows_bodies, requests: AtomicU64::new(0), texts });
    tokio::select! {
        never = accept(&listener, &shared) => match never {},
        ended = print(output, printed) => ended.context("cannot print what arrives"),
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

async fn print(output: Output, mut texts: Receiver<String>) -> std::io::Result<()> {
    while let Some(text) = texts.recv().await {
        output.line(text)?;
    }
    Ok(())
}

async fn accept(listener: &TcpListener, shared: &Arc<Shared>) -> Infallible {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let place = places.clone().acquire_owned().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(take_requests(stream, shared.clone(), place.ok()));
            }
            Err(error) => {
                notice(format!("a connection could not be taken: {error}"));
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Takes the requests of one connection.
async fn take_requests(stream: TcpStream, shared: Arc<Shared>, _place: Option<OwnedSemaphorePermit>) {
    let service = service_fn(|request| answer(request, &shared));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await
        && error.is_parse()
    {
        notice(format!("what arrived is not HTTP/1: {error}"));
    }
}

async fn answer(request: Request<Incoming>, shared: &Shared) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, mut body) = request.into_parts();
    let (mut size, mut beginning) = (0, Vec::new());
    while let Some(frame) = body.frame().await {
        if let Ok(bytes) = frame?.into_data() {
            size += bytes.len() as u64;
            let room = SHOWN_BODY - beginning.len();
            beginning.extend_from_slice(&bytes[..room.min(bytes.len())]);
        }
    }
    let number = shared.requests.fetch_add(1, Ordering::Relaxed) + 1;
    let status = shared.plan.status(number, head.uri.path());
    let beginning = shared.shows_bodies.then_some(&*beginning);
    let text = Arrival { number, head: &head, size, beginning }.text(status);
    // It fails only when the program ends.
    shared.texts.send(text).await.ok();
    tokio::time::sleep(shared.plan.delay).await;
    Ok(response(status, shared.plan.retry_after(status)))
}

fn response(status: u16, retry_after: Option<u32>) -> Response<Full<Bytes>> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let has_body = !matches!(status.as_u16(), 204 | 205 | 304);
    let text = status.canonical_reason().filter(|_| has_body).map(|reason| format!("{reason}\n"));
    let mut response = Response::new(Full::from(text.unwrap_or_default()));
    *response.status_mut() = status;
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
