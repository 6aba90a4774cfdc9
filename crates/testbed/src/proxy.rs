//! A TCP proxy that drops or delays what it forwards.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::{Shutdown, listen, shutdown};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::port;

/// The most bytes of one read.
const BUFFER: usize = 64 * 1024;
/// How many connections may wait to be accepted.
const BACKLOG: i32 = 128;
/// How many ports may be lost to other processes before the start fails.
const PORT_TRIES: usize = 20;

/// A proxy in front of one server. An order has taken effect once its call returns.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    orders: Option<UnboundedSender<(Order, std::sync::mpsc::Sender<()>)>>,
    faults: Arc<Faults>,
    thread: Option<JoinHandle<()>>,
}

/// What is dropped or delayed.
#[derive(Debug, Default)]
struct Faults {
    lose_answers: AtomicBool,
    lose_requests: AtomicBool,
    lost: AtomicU64,
    /// How long each part of an answer is delayed, in milliseconds.
    answers_after_ms: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
enum Order {
    CutAll,
    Refuse(bool),
    LeadTo(SocketAddr),
}

impl Proxy {
    /// Starts a proxy for the server at `target`.
    pub fn start(target: SocketAddr) -> Self {
        let listener = (0..PORT_TRIES).find_map(|_| {
            let address = SocketAddr::from(([127, 0, 0, 1], port::free()));
            std::net::TcpListener::bind(address).ok()
        });
        let listener = listener.expect("a port for the proxy");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let address = listener.local_addr().expect("the address of the proxy");
        let faults = Arc::new(Faults::default());
        let (orders, receiver) = unbounded_channel();
        let gate = Gate { target, faults: Arc::clone(&faults), connections: JoinSet::new() };
        let thread = std::thread::Builder::new().name("proxy".to_owned());
        // A runtime of its own, on its own thread: the caller may already be in one.
        let thread = thread.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("making a runtime");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener");
                gate.run(listener, receiver).await;
            });
        });
        let thread = thread.expect("starting a thread");
        Proxy { address, orders: Some(orders), faults, thread: Some(thread) }
    }

    /// The address to connect to instead of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes every connection, on both sides.
    pub fn cut_all(&self) {
        self.order(Order::CutAll);
    }

    /// Forwards new connections to this server from now on. Open connections stay as they are.
    pub fn lead_to(&self, target: SocketAddr) {
        self.order(Order::LeadTo(target));
    }

    /// Sets whether new connections are refused, as if nothing listened. Open connections stay open.
    pub fn refuse(&self, on: bool) {
        self.order(Order::Refuse(on));
    }

    /// From now on the server gets what clients send, and clients get nothing: work is done, and its answer is lost.
    pub fn lose_answers(&self) {
        self.faults.lose_answers.store(true, Ordering::Release);
    }

    /// From now on the server gets nothing of what clients send.
    pub fn lose_requests(&self) {
        self.faults.lose_requests.store(true, Ordering::Release);
    }

    /// From now on each part of an answer is delayed by this time, as by a busy server. Nothing is lost.
    pub fn delay_answers(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.faults.answers_after_ms.store(millis, Ordering::Release);
    }

    /// How many bytes have been dropped since the start: shows when an answer was.
    pub fn lost_bytes(&self) -> u64 {
        self.faults.lost.load(Ordering::Acquire)
    }

    /// Forwards everything again, without delay, and accepts connections. A connection that has lost a part of its
    /// stream is useless: call [`cut_all`](Proxy::cut_all) first.
    pub fn restore(&self) {
        self.faults.lose_answers.store(false, Ordering::Release);
        self.faults.lose_requests.store(false, Ordering::Release);
        self.delay_answers(Duration::ZERO);
        self.refuse(false);
    }

    fn order(&self, order: Order) {
        let (done, wait) = std::sync::mpsc::channel();
        let orders = self.orders.as_ref().expect("the orders are taken on drop only");
        orders.send((order, done)).expect("the proxy has ended");
        wait.recv().expect("the proxy has ended");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.orders = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            eprintln!("the proxy at {} panicked", self.address);
        }
    }
}

/// Owns the listener and the connections.
struct Gate {
    target: SocketAddr,
    faults: Arc<Faults>,
    connections: JoinSet<io::Result<()>>,
}

impl Gate {
    async fn run(mut self, listener: TcpListener, mut orders: UnboundedReceiver<(Order, std::sync::mpsc::Sender<()>)>) {
        let (mut listener, mut refusing) = (Some(listener), None);
        loop {
            tokio::select! {
                // Orders first: no connection that comes after an order may be handled before it.
                biased;
                order = orders.recv() => {
                    let Some((order, done)) = order else { return };
                    match order {
                        Order::CutAll => self.connections.shutdown().await,
                        Order::Refuse(true) => refusing = listener.take().map(stop_listening).or(refusing),
                        Order::Refuse(false) => listener = refusing.take().map(listen_again).or(listener),
                        Order::LeadTo(target) => self.target = target,
                    }
                    // The caller of the order may be gone.
                    done.send(()).ok();
                }
                client = accept(listener.as_ref()) => {
                    // A client that is gone before it was accepted does not matter.
                    if let Ok(client) = client {
                        self.connections.spawn(carry(client, self.target, Arc::clone(&self.faults)));
                    }
                }
                // Both ends of a connection notice its end themselves.
                Some(_) = self.connections.join_next() => {}
            }
        }
    }
}

/// Stops listening and keeps the port. If the socket were closed, another process could take the port, or a child process
/// that is just being started could hold a copy of the socket until its exec and accept connections.
fn stop_listening(listener: TcpListener) -> std::net::TcpListener {
    let socket = listener.into_std().expect("a listener without a runtime");
    shutdown(&socket, Shutdown::Both).expect("a listener can be shut down");
    socket
}

fn listen_again(socket: std::net::TcpListener) -> TcpListener {
    listen(&socket, BACKLOG).expect("a socket can listen again");
    TcpListener::from_std(socket).expect("a listener")
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => listener.accept().await.map(|(client, _)| client),
        None => std::future::pending().await,
    }
}

async fn carry(client: TcpStream, target: SocketAddr, faults: Arc<Faults>) -> io::Result<()> {
    let server = TcpStream::connect(target).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let at_once = AtomicU64::new(0);
    let requests = pump(from_client, to_server, (&faults.lose_requests, &at_once), &faults.lost);
    let answers = pump(from_server, to_client, (&faults.lose_answers, &faults.answers_after_ms), &faults.lost);
    tokio::try_join!(requests, answers)?;
    Ok(())
}

/// Forwards one direction until its end, which is passed on.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    (lose, after_ms): (&AtomicBool, &AtomicU64),
    lost: &AtomicU64,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        let delay = Duration::from_millis(after_ms.load(Ordering::Acquire));
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if lose.load(Ordering::Acquire) {
            lost.fetch_add(length as u64, Ordering::AcqRel);
        } else {
            to.write_all(&buffer[..length]).await?;
        }
    }
}
