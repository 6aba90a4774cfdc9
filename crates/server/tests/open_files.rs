//! A process that may open no more files goes on serving. It is a program of its own: the limit is the whole process's.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "these tests live on the machine's clock and runtime")]

#[path = "api/world/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the world of the other tests has more than this one needs")]
mod world;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use world::World;

/// Longer than anything here takes: a server that does not go on fails the test instead of holding it up.
const LONG: std::time::Duration = std::time::Duration::from_secs(60);

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[tokio::test]
async fn idle_connections_are_closed_when_no_more_files_may_be_opened() {
    let mut world = World::start().await;
    // A socket has its file before it is connected, so from here on only the server opens files.
    let sockets: Vec<_> = (0..400).map(|_| TcpSocket::new_v4().unwrap()).collect();
    let limit = getrlimit(Resource::Nofile);
    let few = open_files() + 20;
    setrlimit(Resource::Nofile, Rlimit { current: Some(few as u64), maximum: limit.maximum }).unwrap();
    let mut idle = Vec::new();
    let mut last = None;
    for socket in sockets {
        let connected = tokio::time::timeout(LONG, socket.connect(world.address)).await.unwrap().unwrap();
        idle.extend(last.replace(connected));
    }
    let mut last = last.unwrap();
    last.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let read = last.read_to_string(&mut answer);
    tokio::time::timeout(LONG, read).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // The server took in hundreds of connections with room for twenty.
    let mut closed = 0;
    for stream in &mut idle {
        let mut byte = [0];
        let read = stream.try_read(&mut byte);
        closed += usize::from(!matches!(&read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock));
    }
    assert!(closed >= 300, "{closed}");
    setrlimit(Resource::Nofile, limit).unwrap();
    world.begin_shutdown();
    world.stopped().await.unwrap();
}
