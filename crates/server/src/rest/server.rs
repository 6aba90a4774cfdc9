//! Accepts connections, serves them, and stops in good order.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use redrive_core::TenantId;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};

use super::call::Context;
use super::host_name::HostNames;
use super::options::{Error, Options};
use super::service::respond;
use super::stopping;
use crate::app::App;

/// How long to wait before accepting again when the machine has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How many times in a row accepting may fail.
const ACCEPT_FAILURES: usize = 100;
/// The most streams at once on one HTTP/2 connection.
const HTTP2_STREAMS: u32 = 256;

/// Serves the API on `listener` until `shutdown` ends; then accepts nothing more, answers those who wait for a task's
/// end with the task as it is, and lets requests finish within [`Options::drain_timeout`].
pub async fn serve(
    listener: TcpListener,
    app: Arc<App>,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    options.validate()?;
    let (stop, stopping) = stopping::channel();
    let tenant = TenantId::default_tenant();
    let address = listener.local_addr().map_err(Error::Address)?;
    let names = HostNames::new(options.host_names.clone(), address.ip());
    let context = Arc::new(Context { app, tenant, names, stopping, body_read_timeout: options.body_read_timeout });
    let builder = Arc::new(builder(&options));
    let slots = Arc::new(Semaphore::new(options.max_connections));
    let mut connections = JoinSet::new();
    let mut failures = 0;
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(ended) = connections.join_next() => note(ended),
            accepted = accept(&listener, &slots) => match accepted {
                Ok((stream, slot)) => {
                    failures = 0;
                    let limit = options.header_read_timeout;
                    connections.spawn(connection(stream, slot, builder.clone(), context.clone(), limit));
                }
                Err(error) => {
                    failures += 1;
                    pause(error, failures).await?;
                }
            },
        }
    }
    drop(listener);
    stop.begin();
    drain(connections, options.drain_timeout).await;
    Ok(())
}

fn builder(options: &Options) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(options.header_read_timeout);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS)
        // A peer that is gone without a word is found out, so that it does not keep its place for ever.
        .keep_alive_interval(options.header_read_timeout)
        .keep_alive_timeout(options.header_read_timeout);
    builder
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Result<(TcpStream, OwnedSemaphorePermit), std::io::Error> {
    let slot = slots.clone().acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, slot))
}

#[expect(clippy::disallowed_methods, reason = "connections live on the machine's clock")]
async fn pause(error: std::io::Error, failures: usize) -> Result<(), Error> {
    tracing::warn!(%error, failures, "accepting a connection");
    if failures >= ACCEPT_FAILURES {
        return Err(Error::Accept(error));
    }
    tokio::time::sleep(ACCEPT_PAUSE).await;
    Ok(())
}

/// One connection, until it ends or the server stops.
#[expect(clippy::disallowed_methods, reason = "connections live on the machine's clock")]
async fn connection(
    stream: TcpStream,
    slot: OwnedSemaphorePermit,
    builder: Arc<auto::Builder<TokioExecutor>>,
    context: Arc<Context>,
    first_request_within: Duration,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "setting TCP_NODELAY");
    }
    let asked = AtomicBool::new(false);
    let service = service_fn(|request| {
        asked.store(true, Ordering::Relaxed);
        respond(context.clone(), request)
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    // hyper's own limit begins once it knows which HTTP is spoken: a caller that says nothing at all is ours to end.
    let silence = tokio::time::sleep(first_request_within);
    let stop = context.stopping.begun();
    tokio::pin!(connection, silence, stop);
    let (mut may_be_silent, mut is_stopping) = (true, false);
    let ended = loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => break ended,
            () = stop.as_mut(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            () = silence.as_mut(), if may_be_silent => {
                may_be_silent = false;
                if !asked.load(Ordering::Relaxed) {
                    break Ok(());
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
    drop(slot);
}

/// Lets the connections finish, and ends those that do not in time.
#[expect(clippy::disallowed_methods, reason = "connections live on the machine's clock")]
async fn drain(mut connections: JoinSet<()>, within: Duration) {
    let all_ended = async {
        while let Some(ended) = connections.join_next().await {
            note(ended);
        }
    };
    if tokio::time::timeout(within, all_ended).await.is_err() {
        tracing::warn!(connections = connections.len(), "ending connections that did not finish in time");
        connections.shutdown().await;
    }
}

fn note(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection panicked");
    }
}
