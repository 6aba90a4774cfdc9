//! The proxy in front of a real server.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use redrive_testbed::{Proxy, Redis, wait_until};

fn redis_and_proxy() -> (Redis, Proxy) {
    let redis = Redis::start();
    let proxy = Proxy::start(SocketAddr::from(([127, 0, 0, 1], redis.port())));
    (redis, proxy)
}

fn ask(stream: &mut TcpStream, command: &str, answer: &str) {
    stream.write_all(command.as_bytes()).unwrap();
    let mut bytes = vec![0; answer.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), answer);
}

fn assert_cut(mut stream: TcpStream) {
    match stream.read(&mut [0; 1]) {
        Ok(length) => assert_eq!(length, 0, "an answer got through"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[test]
fn an_answer_is_lost_although_the_server_did_the_work() {
    let (redis, proxy) = redis_and_proxy();
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    ask(&mut stream, "INCR n\r\n", ":1\r\n");
    proxy.lose_answers();
    stream.write_all(b"INCR n\r\n").unwrap();
    wait_until("the answer is lost", || proxy.lost_bytes() == 4);
    proxy.cut_all();
    assert_cut(stream);
    assert_eq!(redis.call(&["GET", "n"]), "2");

    proxy.restore();
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    ask(&mut stream, "INCR n\r\n", ":3\r\n");
}

#[test]
fn a_lost_request_never_reaches_the_server() {
    let (redis, proxy) = redis_and_proxy();
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    proxy.lose_requests();
    stream.write_all(b"INCR n\r\n").unwrap();
    wait_until("the request is lost", || proxy.lost_bytes() == 8);
    proxy.cut_all();
    assert_cut(stream);
    assert_eq!(redis.call(&["GET", "n"]), "");
}

#[test]
fn a_delayed_answer_comes_late_and_whole() {
    const DELAY: Duration = Duration::from_millis(50);
    let (_redis, proxy) = redis_and_proxy();
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    proxy.delay_answers(DELAY);
    let begin = Instant::now();
    ask(&mut stream, "INCR n\r\n", ":1\r\n");
    assert!(begin.elapsed() >= DELAY, "{:?}", begin.elapsed());
    assert_eq!(proxy.lost_bytes(), 0);
    proxy.restore();
    ask(&mut stream, "INCR n\r\n", ":2\r\n");
}

#[test]
fn a_proxy_that_refuses_keeps_the_connections_that_it_has() {
    let (_redis, proxy) = redis_and_proxy();
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    ask(&mut stream, "PING\r\n", "+PONG\r\n");
    proxy.refuse(true);
    assert_eq!(TcpStream::connect(proxy.address()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    ask(&mut stream, "PING\r\n", "+PONG\r\n");
    proxy.cut_all();
    assert_cut(stream);
    proxy.refuse(false);
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    ask(&mut stream, "PING\r\n", "+PONG\r\n");
}

/// Between its fork and its exec, a child process has a copy of every open socket, also of the proxy's listener.
#[test]
fn a_proxy_refuses_and_accepts_again_while_processes_are_started() {
    let server = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let proxy = Proxy::start(server.local_addr().unwrap());
    std::thread::scope(|scope| {
        let starting = scope.spawn(|| {
            for _ in 0..500 {
                assert!(Command::new("true").status().unwrap().success());
            }
        });
        while !starting.is_finished() {
            proxy.refuse(true);
            assert_eq!(TcpStream::connect(proxy.address()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
            proxy.refuse(false);
            TcpStream::connect(proxy.address()).unwrap();
            server.accept().unwrap();
        }
    });
}
