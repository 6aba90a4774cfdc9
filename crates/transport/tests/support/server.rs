//! A server on a port of this machine, and what it saw.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::request::Request;
use super::visitor::Visitor;

/// After this long, a test that waits for something has failed. No assertion depends on it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that does with each connection what it was told. It stops when it is dropped.
pub struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
    accepting: AbortHandle,
}

/// What a server saw so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub accepted: usize,
    /// Connections that are still open.
    pub open: usize,
    /// The most connections that were open at once.
    pub most_open: usize,
    /// Requests that began to come in.
    pub requests: usize,
    /// Bytes read, after TLS. HTTP/2 does not count here.
    pub received: u64,
    /// Bytes written in answers.
    pub written: u64,
}

impl Server {
    /// Starts a server that does with each connection what `behaviour` says.
    pub async fn start<B, F>(behaviour: B) -> Server
    where
        B: Fn(Visitor<TcpStream>) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        Server::start_on("127.0.0.1:0", behaviour).await
    }

    /// Starts a server on this address.
    pub async fn start_on<B, F>(address: &str, behaviour: B) -> Server
    where
        B: Fn(Visitor<TcpStream>) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let accepting = tokio::spawn({
            let seen = seen.clone();
            async move {
                // Dropping the set with the task ends the connections too.
                let mut connections = tokio::task::JoinSet::new();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    connections.spawn(behaviour(Visitor::new(stream, seen.clone())));
                }
            }
        })
        .abort_handle();
        Server { address, seen, accepting }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The `http` URL of this path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The `https` URL of this path, by the name that good certificates have.
    pub fn secure_url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }

    /// What it saw so far.
    pub fn counts(&self) -> Counts {
        *self.seen.counts.borrow()
    }

    /// Waits until `reached`.
    pub async fn wait_for(&self, reached: impl Fn(&Counts) -> bool) -> Counts {
        let mut counts = self.seen.counts.subscribe();
        let waited = tokio::time::timeout(PATIENCE, counts.wait_for(reached)).await.map(|counts| *counts.unwrap());
        waited.unwrap_or_else(|_| panic!("waited in vain; saw {:?}", self.counts()))
    }

    /// The requests that came in, in the order of their coming.
    pub fn requests(&self) -> Vec<Request> {
        self.seen.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// An address of this machine without a listener.
pub async fn unused_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// A listener that answers no more connection requests: its queue is full, so the system drops them.
pub struct Full {
    address: SocketAddr,
    _listener: TcpListener,
    _queued: Vec<TcpStream>,
}

impl Full {
    /// Starts one.
    pub async fn start() -> Full {
        const BACKLOG: u32 = 1;
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(BACKLOG).unwrap();
        let address = listener.local_addr().unwrap();
        let mut queued = Vec::new();
        // Linux queues one more than it was told.
        for _ in 0..=BACKLOG {
            queued.push(TcpStream::connect(address).await.unwrap());
        }
        Full { address, _listener: listener, _queued: queued }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[derive(Default)]
pub(super) struct Seen {
    counts: watch::Sender<Counts>,
    requests: Mutex<Vec<Request>>,
}

impl Seen {
    pub(super) fn count(&self, change: impl FnOnce(&mut Counts)) {
        self.counts.send_modify(change);
    }

    /// Keeps `request` and says which one it is.
    pub(super) fn begin(&self, request: Request) -> usize {
        let mut requests = self.requests.lock().unwrap();
        requests.push(request);
        let place = requests.len() - 1;
        drop(requests);
        self.count(|counts| counts.requests += 1);
        place
    }

    pub(super) fn complete(&self, place: usize, body: &[u8]) {
        self.requests.lock().unwrap()[place].body = body.to_vec();
    }
}
