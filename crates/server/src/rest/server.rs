//! Accepts connections, serves them, and shuts down gracefully.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use redrive_core::TenantId;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::net::{TcpListener, TcpStream};

use super::acceptor::{Acceptor, Listen};
use super::call::Context;
use super::connections::Connections;
use super::host_name::HostNames;
use super::memory::Memory;
use super::metered::Metered;
use super::options::{Error, Options};
use super::peer::{MOST_HEAD, Peer, Uptime};
use super::service::respond;
use super::shutdown;
use crate::app::App;
use crate::caller::Caller;

/// The most streams at once on one HTTP/2 connection.
const HTTP2_STREAMS: u32 = 256;
/// The most bytes that a caller may send over one HTTP/2 connection before the server has taken them.
const HTTP2_WINDOW: u32 = 256 * 1024;
/// The most bytes of one HTTP/2 stream's answer that wait for the socket.
const HTTP2_SEND_BUFFER: usize = 64 * 1024;
/// The most bytes of an answer that the kernel buffers: they are memory as well.
const SEND_BUFFER: usize = 256 * 1024;
/// For how long one warning of failed accepts stands for all, in milliseconds.
const QUIET_MS: u64 = 1_000;
/// The longest time between two checks for callers that read nothing.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// The shortest time between two checks for callers that read nothing.
const SHORTEST_LOOK: Duration = Duration::from_millis(1);

/// Serves the API on `listener` until `shutdown` ends; then accepts no more connections, answers requests that wait for
/// a task with its current state, and lets requests finish within [`Options::drain_timeout`]. A failed accept does not
/// end it.
pub async fn serve(
    listener: TcpListener,
    app: Arc<App>,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    let memory = Memory::new(options.max_memory_bytes);
    serve_within(memory, listener, app, options, shutdown).await
}

/// [`serve`] with a memory budget that the caller can inspect; [`Options::max_memory_bytes`] is not used.
pub async fn serve_within(
    memory: Arc<Memory>,
    listener: TcpListener,
    app: Arc<App>,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    options.validate()?;
    // Connections have what their listener has.
    if let Err(error) = set_socket_send_buffer_size(&listener, SEND_BUFFER) {
        tracing::warn!(%error, "bounding the buffers of connections");
    }
    let (trigger, signal) = shutdown::channel();
    let local = Caller::local(TenantId::default_tenant());
    let address = listener.local_addr().map_err(Error::Address)?;
    let names = HostNames::new(options.host_names.clone(), address.ip());
    let (body_read_timeout, connections) = (options.body_read_timeout, Arc::default());
    let context = Arc::new(Context { app, local, names, shutdown: signal, body_read_timeout, connections });
    let server = Server { builder: Arc::new(builder(&options)), context, memory, uptime: Uptime::begin(), options };
    let count = server.context.connections.clone();
    let mut connections = Connections::new(server.options.max_connections).counted_in(count);
    server.accept_until(shutdown, Acceptor::new(listener), &mut connections).await;
    trigger.start();
    connections.drain(server.options.drain_timeout).await;
    Ok(())
}

/// What all connections of a server share.
struct Server {
    builder: Arc<auto::Builder<TokioExecutor>>,
    context: Arc<Context>,
    memory: Arc<Memory>,
    uptime: Uptime,
    options: Options,
}

impl Server {
    /// Accepts connections until `shutdown` ends, and closes those that must make room.
    #[expect(clippy::disallowed_methods, reason = "connections live on the machine's clock")]
    async fn accept_until<L: Listen>(
        &self,
        shutdown: impl Future<Output = ()>,
        mut accepting: Acceptor<L>,
        connections: &mut Connections,
    ) {
        let mut looks = tokio::time::interval((self.options.write_timeout / 4).clamp(SHORTEST_LOOK, LONGEST_LOOK));
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut quiet_until = 0;
        tokio::pin!(shutdown);
        loop {
            let room_within = connections.room_within();
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                () = connections.ended() => {}
                // It also finds out that a connection can be closed, when there was no room at all.
                _ = looks.tick(), if !connections.is_empty() => {
                    connections.close_stalled(self.options.write_timeout);
                    self.tell_refusals();
                }
                () = tokio::time::sleep(room_within.unwrap_or_default()), if room_within.is_some_and(|wait| !wait.is_zero()) => {}
                accepted = accepting.next(), if room_within == Some(Duration::ZERO) => match accepted {
                    Ok(stream) => self.begin(stream, connections),
                    Err(error) => {
                        let closed = connections.close_for_files();
                        if closed > 0 {
                            accepting.resume_soon();
                        }
                        let failures = accepting.failures;
                        // The first failures come quickly one after the other: one of them is enough to read.
                        if self.uptime.millis() >= quiet_until {
                            quiet_until = self.uptime.millis() + QUIET_MS;
                            tracing::warn!(%error, failures, closed, "a connection could not be accepted");
                        }
                    }
                },
            }
        }
    }

    /// Logs one line for all refusals since the last one, so that a caller that fills the memory does not fill the log.
    fn tell_refusals(&self) {
        let refusals = self.memory.take_refusals();
        if refusals > 0 {
            let held_bytes = self.memory.held();
            tracing::warn!(refusals, held_bytes, "requests were answered 503: there is no memory for them");
        }
    }

    fn begin(&self, stream: TcpStream, connections: &mut Connections) {
        let purpose = connections.make_room();
        let peer = Peer::new(self.memory.clone(), self.uptime, purpose);
        let (builder, context) = (self.builder.clone(), self.context.clone());
        let first_request_within = self.options.header_read_timeout;
        connections.serve(peer.clone(), connection(stream, peer, builder, context, first_request_within));
    }
}

fn builder(options: &Options) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(options.header_read_timeout).max_buf_size(MOST_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS)
        .initial_connection_window_size(HTTP2_WINDOW)
        .initial_stream_window_size(HTTP2_WINDOW)
        .max_send_buf_size(HTTP2_SEND_BUFFER)
        // Keepalive finds peers that vanished, so that they do not hold a connection for ever.
        .keep_alive_interval(options.header_read_timeout)
        .keep_alive_timeout(options.header_read_timeout);
    builder
}

/// One connection, until it ends or the server stops.
#[expect(clippy::disallowed_methods, reason = "connections live on the machine's clock")]
async fn connection(
    stream: TcpStream,
    peer: Arc<Peer>,
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
        respond(context.clone(), peer.clone(), request)
    });
    let connection = builder.serve_connection(TokioIo::new(Metered::new(stream, peer.clone())), service);
    // hyper's own timeout starts once it knows the HTTP version: a connection without any byte is closed here.
    let silence = tokio::time::sleep(first_request_within);
    let stop = context.shutdown.started();
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
}
