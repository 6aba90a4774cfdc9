//! Attackers: connections that send a request and do not read, send and do not finish, or do nothing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// The receive buffer of a caller that does not read: the service need not hold what this kernel takes.
const NARROW: u32 = 4_096;

/// Attackers that run until this is dropped.
pub struct Attackers {
    runtime: Handle,
    tasks: JoinSet<()>,
    ends: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Attackers {
    /// Starts with none.
    pub fn new(runtime: &Handle) -> Self {
        Attackers { runtime: runtime.clone(), tasks: JoinSet::new(), ends: Arc::default() }
    }

    /// Adds an attacker; how it ends is counted.
    pub fn add<F>(&mut self, attack: F)
    where
        F: Future<Output = Result<String>> + Send + 'static,
    {
        let ends = Arc::clone(&self.ends);
        let counted = async move {
            let end = attack.await.unwrap_or_else(|error| cause(&error));
            *ends.lock().unwrap_or_else(PoisonError::into_inner).entry(end).or_default() += 1;
        };
        self.tasks.spawn_on(counted, &self.runtime);
    }

    /// Opens `count` connections at an even pace, each of which sends `bytes` and then waits for the answer's first
    /// line.
    pub fn send(&mut self, address: SocketAddr, count: usize, pace: Duration, bytes: &Bytes) {
        for number in 0..count {
            let bytes = bytes.clone();
            self.add(async move {
                tokio::time::sleep(pace * u32::try_from(number).unwrap_or(u32::MAX)).await;
                let mut stream = connect(address).await?;
                stream.write_all(&bytes).await.context("sending")?;
                status(&mut stream).await
            });
        }
    }

    /// How attackers ended, and how often.
    pub fn ends(&self) -> BTreeMap<String, usize> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How attackers ended, in one line.
    pub fn describe(&self) -> String {
        let ends = self.ends();
        let held = (self.tasks.len()).saturating_sub(ends.values().sum());
        let ends: Vec<String> = ends.iter().map(|(end, count)| format!("{count} × {end}")).collect();
        format!("{held} held on; {}", if ends.is_empty() { "none ended".to_owned() } else { ends.join(", ") })
    }
}

/// The root cause only: the other errors contain ports, which differ.
fn cause(error: &anyhow::Error) -> String {
    error.root_cause().to_string()
}

/// Opens a connection.
pub async fn connect(address: SocketAddr) -> Result<TcpStream> {
    TcpStream::connect(address).await.context("connecting")
}

/// Opens a connection with a small receive buffer.
pub async fn connect_narrow(address: SocketAddr) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(NARROW)?;
    socket.connect(address).await.context("connecting")
}

/// Reads the status of an answer, and nothing more of it.
pub async fn status(stream: &mut TcpStream) -> Result<String> {
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.context("reading an answer")?;
    Ok(String::from_utf8_lossy(&line[9..]).into_owned())
}

/// Sends one byte at a time, with a pause before each.
pub async fn send_slowly(stream: &mut TcpStream, bytes: &[u8], pause: Duration) -> Result<()> {
    for byte in bytes {
        tokio::time::sleep(pause).await;
        stream.write_all(std::slice::from_ref(byte)).await.context("sending slowly")?;
    }
    Ok(())
}

/// Reads one byte at a time, with a pause before each, until the other side closes the connection.
pub async fn read_slowly(stream: &mut TcpStream, pause: Duration) -> Result<()> {
    let mut byte = [0];
    while stream.read(&mut byte).await.context("reading slowly")? != 0 {
        tokio::time::sleep(pause).await;
    }
    Ok(())
}
