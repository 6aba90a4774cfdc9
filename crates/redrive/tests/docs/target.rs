//! An HTTP server for tasks to be sent to, on a port that the document names.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::PATIENCE;

/// A server that runs until the test ends, and answers 200.
pub(crate) struct Target {
    keys: Receiver<String>,
}

impl Target {
    /// Listens on a port of 127.0.0.1.
    pub(crate) fn listen(port: u16) -> Target {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let (sender, keys) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                thread::spawn(move || answer(stream, &sender));
            }
        });
        Target { keys }
    }

    /// Waits for a request with this idempotency key.
    pub(crate) fn wait_for(&self, key: &str) {
        while self.keys.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no request with the key {key} came")) != key {
        }
    }
}

/// Answers one request of a connection.
fn answer(mut stream: TcpStream, keys: &Sender<String>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut first, mut length, mut key) = (String::new(), 0, String::new());
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "idempotency-key" => value.trim().clone_into(&mut key),
            _ => {}
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink()).ok()?;
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").ok()?;
    keys.send(key).ok()
}
