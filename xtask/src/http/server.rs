//! A server on its own thread with configurable replies: the target of benchmarks and crash runs.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::message::{Frame, Request};

const INBOX: usize = 4 * 1024;

/// Decides how a request is answered. Called on the server's only thread: it must not block.
pub trait Respond: Send + Sync + 'static {
    /// The reply to `request`.
    fn respond(&self, request: &Request<'_>) -> Reply;
}

/// The reply of a target.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Sends these bytes, a whole answer.
    Now(Bytes),
    /// Sends these bytes after this time.
    After(Duration, Bytes),
    /// Sends these bytes, the beginning of an answer, and resets the connection.
    Cut(Bytes),
    /// Resets the connection without an answer.
    Reset,
    /// Never answers; holds the connection until the caller gives up.
    Never,
    /// Sends a head, or the beginning of one, and then part after part, until the caller gives up.
    Endless {
        /// The bytes that are sent first.
        head: Bytes,
        /// The bytes that are sent again and again.
        part: Bytes,
        /// The pause before each part.
        every: Duration,
    },
}

/// A running server; it ends when this is dropped.
pub struct Server {
    addresses: Vec<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens on a free loopback port and answers with `respond`.
    pub fn start(name: &str, respond: Arc<impl Respond>) -> Result<Self> {
        Server::start_on(name, &[Ipv4Addr::LOCALHOST], respond)
    }

    /// Listens on a free port of each of these addresses, all on one thread, and answers with `respond`.
    pub fn start_on(name: &str, addresses: &[Ipv4Addr], respond: Arc<impl Respond>) -> Result<Self> {
        let mut listeners = Vec::with_capacity(addresses.len());
        for address in addresses {
            let listener = std::net::TcpListener::bind((*address, 0)).context("binding the target")?;
            listener.set_nonblocking(true)?;
            listeners.push(listener);
        }
        let addresses = listeners.iter().map(|listener| listener.local_addr()).collect::<Result<_, _>>()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let serving = runtime.block_on(async {
                let mut accepting = JoinSet::new();
                for listener in listeners {
                    accepting.spawn(accept(TcpListener::from_std(listener)?, Arc::clone(&respond)));
                }
                tokio::select! {
                    Some(ended) = accepting.join_next() => ended?,
                    // Either a message or a dropped sender: the owner is gone.
                    _ = stopped => Ok(()),
                }
            });
            if let Err(error) = serving {
                eprintln!("the target stopped: {error:#}");
            }
        })?;
        Ok(Server { addresses, stop: Some(stop), thread: Some(thread) })
    }

    /// Its first address.
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// All of its addresses, in the order in which they were given.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("the target's thread panicked");
        }
    }
}

async fn accept(listener: TcpListener, respond: Arc<impl Respond>) -> Result<()> {
    loop {
        let (stream, _) = listener.accept().await.context("accepting a connection")?;
        let respond = Arc::clone(&respond);
        tokio::spawn(async move {
            // A peer that was killed leaves connections in any state: that is expected here.
            serve(stream, respond.as_ref()).await.ok();
        });
    }
}

/// Answers one request after the other until the peer closes or a reply ends the connection.
async fn serve(mut stream: TcpStream, respond: &impl Respond) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut inbox = BytesMut::with_capacity(INBOX);
    loop {
        let Some(frame) = Frame::find(&inbox)? else {
            if stream.read_buf(&mut inbox).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let (head, rest) = inbox.split_at(frame.head);
        let reply = respond.respond(&Request { head, body: &rest[..frame.total - frame.head] });
        inbox.advance(frame.total);
        match reply {
            Reply::Now(answer) => stream.write_all(&answer).await?,
            Reply::After(wait, answer) => {
                tokio::time::sleep(wait).await;
                stream.write_all(&answer).await?;
            }
            Reply::Cut(beginning) => {
                stream.write_all(&beginning).await?;
                stream.set_zero_linger()?;
                return Ok(());
            }
            Reply::Reset => {
                stream.set_zero_linger()?;
                return Ok(());
            }
            Reply::Endless { head, part, every } => {
                stream.write_all(&head).await?;
                loop {
                    tokio::time::sleep(every).await;
                    stream.write_all(&part).await?;
                }
            }
            Reply::Never => while stream.read_buf(&mut inbox).await? != 0 {},
        }
    }
}
