//! A dependency with scripted replies, which records every send.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use redrive_core::{Answer, ErrorType, Timestamp};
use redrive_engine::clock::Clock;
use redrive_engine::transport::{Outbound, SendError, Sending, Transport};
use tokio::sync::{Notify, Semaphore};

use super::PausedClock;

/// The scripted reply to a send.
#[derive(Debug, Clone)]
pub enum Reply {
    Status(u16),
    /// A status with these headers.
    With(u16, Vec<(&'static str, String)>),
    Error(ErrorType),
    /// The reply after this time; the attempt's timeout comes first if it is shorter.
    After(Duration, Box<Reply>),
    /// The reply once the test releases it with [`Scripted::release`].
    Held(Box<Reply>),
    /// The connection is established once the test calls [`Scripted::connect`]; then the reply.
    Connecting(Box<Reply>),
}

/// One send as the dependency received it.
#[derive(Debug, Clone)]
pub struct SeenSend {
    pub at: Timestamp,
    pub outbound: Outbound,
}

/// Decides the reply to a send.
pub type Behaviour = Box<dyn Fn(&Outbound, Timestamp) -> Reply + Send + Sync>;

pub struct Scripted {
    clock: Arc<PausedClock>,
    behaviours: Mutex<BTreeMap<String, Behaviour>>,
    replies: Mutex<BTreeMap<String, VecDeque<Reply>>>,
    sends: Mutex<Vec<SeenSend>>,
    arrived: Notify,
    gate: Arc<Semaphore>,
    connecting: Arc<Semaphore>,
    asked: Notify,
    withdrawn: AtomicUsize,
}

impl Scripted {
    pub fn new(clock: Arc<PausedClock>) -> Self {
        Scripted {
            clock,
            behaviours: Mutex::default(),
            replies: Mutex::default(),
            sends: Mutex::default(),
            arrived: Notify::new(),
            gate: Arc::new(Semaphore::new(0)),
            connecting: Arc::new(Semaphore::new(0)),
            asked: Notify::new(),
            withdrawn: AtomicUsize::new(0),
        }
    }

    /// Waits for a connection that is requested after this call.
    pub async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Lets `count` connections be established.
    pub fn connect(&self, count: usize) {
        self.connecting.add_permits(count);
    }

    /// How many sends were withdrawn once their connection was established.
    pub fn withdrawn(&self) -> usize {
        self.withdrawn.load(Ordering::Relaxed)
    }

    /// The replies to the next sends to `dependency`, in order; after them it answers 200.
    pub fn script(&self, dependency: &str, replies: impl IntoIterator<Item = Reply>) {
        self.replies.lock().unwrap().entry(dependency.into()).or_default().extend(replies);
    }

    /// From now on this decides the replies of `dependency` that are not scripted.
    pub fn behave(&self, dependency: &str, reply: impl Fn(&Outbound, Timestamp) -> Reply + Send + Sync + 'static) {
        self.behaviours.lock().unwrap().insert(dependency.into(), Box::new(reply));
    }

    pub fn sends(&self) -> Vec<SeenSend> {
        self.sends.lock().unwrap().clone()
    }

    /// Waits until `count` sends have arrived in all.
    pub async fn arrived(&self, count: usize) {
        loop {
            let arrived = self.arrived.notified();
            if self.sends.lock().unwrap().len() >= count {
                return;
            }
            arrived.await;
        }
    }

    /// Releases `count` held replies.
    pub fn release(&self, count: usize) {
        self.gate.add_permits(count);
    }
}

/// The dependency as a transport. The `Arc` lets a send refer to it.
pub struct Wire(pub Arc<Scripted>);

impl Transport for Wire {
    fn send(&self, outbound: Outbound) -> Sending {
        let scripted = self.0.clone();
        let reply =
            scripted.replies.lock().unwrap().get_mut(outbound.lane.dependency.as_str()).and_then(VecDeque::pop_front);
        let behaves = || {
            let behaviours = scripted.behaviours.lock().unwrap();
            let behaviour = behaviours.get(outbound.lane.dependency.as_str());
            behaviour.map_or(Reply::Status(200), |behaviour| behaviour(&outbound, scripted.clock.now()))
        };
        let mut reply = reply.unwrap_or_else(behaves);
        let timeout = outbound.attempt_timeout;
        scripted.asked.notify_one();
        let exchange = async move {
            if let Reply::Connecting(then) = reply {
                scripted.connecting.acquire().await.unwrap().forget();
                reply = *then;
            }
            if outbound.gate.open().is_err() {
                scripted.withdrawn.fetch_add(1, Ordering::Relaxed);
                return Err(error(ErrorType::NotSent));
            }
            scripted.sends.lock().unwrap().push(SeenSend { at: scripted.clock.now(), outbound });
            scripted.arrived.notify_waiters();
            answer(reply, scripted.gate.clone()).await
        };
        Box::pin(async move {
            tokio::time::timeout(timeout, exchange).await.unwrap_or_else(|_| Err(error(ErrorType::ReadTimeout)))
        })
    }
}

async fn answer(mut reply: Reply, gate: Arc<Semaphore>) -> Result<Answer, SendError> {
    loop {
        match reply {
            Reply::Status(status) => return Ok(plain(status, vec![])),
            Reply::With(status, headers) => return Ok(plain(status, headers)),
            Reply::Error(kind) => return Err(error(kind)),
            Reply::After(wait, then) => {
                tokio::time::sleep(wait).await;
                reply = *then;
            }
            Reply::Connecting(then) => reply = *then,
            Reply::Held(then) => {
                gate.acquire().await.unwrap().forget();
                reply = *then;
            }
        }
    }
}

fn plain(status: u16, headers: Vec<(&'static str, String)>) -> Answer {
    let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Answer { status, headers, body: Bytes::from_static(b"done").into(), truncated: false }
}

fn error(kind: ErrorType) -> SendError {
    SendError { kind, message: format!("scripted {}", kind.as_str()) }
}
