//! Sends that are withdrawn when their connection stands.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use redrive_core::ErrorType;
use redrive_engine::transport::{Gate, Withdrawn};
use redrive_transport::{HttpTransport, Options, PlainProtocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::call::{Call, call, transport};
use crate::connecting::trusting;
use crate::support::behaviours::OK;
use crate::support::tls::{Authority, Quality};
use crate::support::{Request, Server, behaviours, http2};

/// A gate that is closed.
#[derive(Debug)]
struct Closed;

impl Gate for Closed {
    fn open(&self) -> Result<(), Withdrawn> {
        Err(Withdrawn)
    }
}

async fn is_withdrawn(call: Call, transport: &HttpTransport) {
    let (kind, message) = call.gate(Closed).fails_over(transport).await;
    assert_eq!((kind, message.as_str()), (ErrorType::NotSent, "the send was withdrawn before its first byte"));
}

/// A server of each protocol, with a transport that speaks it and the URL.
async fn every_protocol() -> [(&'static str, Server, HttpTransport, String); 4] {
    let authority = Authority::new();
    let secure = |protocol: &'static str| {
        let acceptor = authority.acceptor(Quality::Good, &[protocol]);
        Server::start(move |visitor| {
            let acceptor = acceptor.clone();
            async move {
                match visitor.secure(&acceptor).await {
                    Some(visitor) if protocol == "h2" => http2::serve(visitor, |_| async { http2::ok() }).await,
                    Some(visitor) => behaviours::answer(visitor, OK).await,
                    None => {}
                }
            }
        })
    };
    let (h1, h2) = (plain(PlainProtocol::Http1).await, plain(PlainProtocol::Http2).await);
    let (secure_h1, secure_h2) = (secure("http/1.1").await, secure("h2").await);
    let urls = [h1.url("/"), h2.url("/"), secure_h1.secure_url("/"), secure_h2.secure_url("/")];
    let [a, b, c, d] = urls;
    [
        ("http/1.1", h1, speaking(PlainProtocol::Http1), a),
        ("http/2", h2, speaking(PlainProtocol::Http2), b),
        ("http/1.1 over tls", secure_h1, trusting(&authority), c),
        ("http/2 over tls", secure_h2, trusting(&authority), d),
    ]
}

fn speaking(plain: PlainProtocol) -> HttpTransport {
    transport(Options { plain, ..Options::default() })
}

async fn plain(plain: PlainProtocol) -> Server {
    match plain {
        PlainProtocol::Http1 => Server::start(|visitor| behaviours::answer(visitor, OK)).await,
        PlainProtocol::Http2 => {
            Server::start(|visitor| http2::serve(visitor, |_: Request| async { http2::ok() })).await
        }
    }
}

#[tokio::test]
async fn nothing_is_written_to_a_new_connection_and_the_next_send_uses_it() {
    for (protocol, server, transport, url) in every_protocol().await {
        is_withdrawn(call(&url), &transport).await;
        server.wait_for(|counts| counts.accepted == 1).await;
        assert_eq!((server.counts().requests, server.counts().received), (0, 0), "{protocol}");
        let call = call(&url);
        let key = call.key();
        assert_eq!(call.over(&transport).await.unwrap().status, 200, "{protocol}");
        assert_eq!((server.counts().accepted, server.counts().requests), (1, 1), "{protocol}");
        assert_eq!(server.requests()[0].one("idempotency-key"), Some(key.as_str()), "{protocol}");
    }
}

#[tokio::test]
async fn nothing_is_written_to_a_kept_connection_and_it_is_kept() {
    for (protocol, server, transport, url) in every_protocol().await {
        assert_eq!(call(&url).over(&transport).await.unwrap().status, 200, "{protocol}");
        let received = server.counts().received;
        is_withdrawn(call(&url), &transport).await;
        assert_eq!((server.counts().requests, server.counts().received), (1, received), "{protocol}");
        assert_eq!(call(&url).over(&transport).await.unwrap().status, 200, "{protocol}");
        assert_eq!((server.counts().accepted, server.counts().requests), (1, 2), "{protocol}");
    }
}

#[tokio::test]
async fn the_gate_is_asked_only_when_the_connection_stands() {
    /// Counts how often it is asked.
    #[derive(Debug)]
    struct CountingGate(Arc<AtomicUsize>);
    impl Gate for CountingGate {
        fn open(&self) -> Result<(), Withdrawn> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }
    let asked = Arc::new(AtomicUsize::new(0));
    let refusing = crate::support::unused_address().await;
    let transport = speaking(PlainProtocol::Http1);
    call(format!("http://{refusing}/")).gate(CountingGate(asked.clone())).fails_over(&transport).await;
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    let server = plain(PlainProtocol::Http1).await;
    call(server.url("/")).gate(CountingGate(asked.clone())).over(&transport).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// A gate that has the server close the connection when it is asked first, and is closed when it is asked again.
struct ClosesTheConnection {
    server: Arc<Server>,
    close: Arc<Notify>,
    asked: Arc<AtomicUsize>,
}

impl std::fmt::Debug for ClosesTheConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClosesTheConnection")
    }
}

impl Gate for ClosesTheConnection {
    fn open(&self) -> Result<(), Withdrawn> {
        if self.asked.fetch_add(1, Ordering::SeqCst) > 0 {
            return Err(Withdrawn);
        }
        let closed_and_noticed = async {
            self.close.notify_one();
            self.server.wait_for(|counts| counts.open == 0).await;
            later_event().await;
        };
        tokio::task::block_in_place(|| Handle::current().block_on(closed_and_noticed));
        Ok(())
    }
}

/// Waits for an event of the network that comes after all that have happened: they have been noticed by then.
async fn later_event() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (mut one, accepted) =
        tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), async { listener.accept().await.unwrap().0 });
    let (one, mut other) = (one.as_mut().unwrap(), accepted);
    one.write_all(b"x").await.unwrap();
    assert_eq!(other.read_u8().await.unwrap(), b'x');
}

/// How often the test is tried: the task that drives a connection may notice its end only after the request was written.
const TRIES: usize = 30;

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_send_that_a_closed_connection_handed_back_is_asked_about_again() {
    for protocol in [PlainProtocol::Http1, PlainProtocol::Http2] {
        let mut tries = 1;
        while !is_handed_back_and_asked_about_again(protocol).await {
            assert!(tries < TRIES, "{protocol:?}: the connection was never known to be closed");
            tries += 1;
        }
    }
}

/// `false` if the request was written before the end of the connection was noticed: then nothing is handed back.
async fn is_handed_back_and_asked_about_again(protocol: PlainProtocol) -> bool {
    let close = Arc::new(Notify::new());
    let server = Server::start({
        let close = close.clone();
        move |visitor| {
            let close = close.clone();
            async move {
                let answering = async {
                    match protocol {
                        PlainProtocol::Http1 => behaviours::answer(visitor, OK).await,
                        PlainProtocol::Http2 => http2::serve(visitor, |_: Request| async { http2::ok() }).await,
                    }
                };
                tokio::select! {
                    () = answering => {}
                    () = close.notified() => {}
                }
            }
        }
    });
    let (server, transport) = (Arc::new(server.await), speaking(protocol));
    assert_eq!(call(server.url("/")).over(&transport).await.unwrap().status, 200);
    let (received, asked) = (server.counts().received, Arc::new(AtomicUsize::new(0)));
    let gate = ClosesTheConnection { server: server.clone(), close, asked: asked.clone() };
    let (kind, message) = call(server.url("/")).gate(gate).fails_over(&transport).await;
    if (kind, asked.load(Ordering::SeqCst)) == (ErrorType::ConnectionReset, 1) {
        return false;
    }
    assert_eq!((kind, asked.load(Ordering::SeqCst)), (ErrorType::NotSent, 2), "{protocol:?}: {message}");
    server.wait_for(|counts| counts.accepted == 2).await;
    assert_eq!((server.counts().requests, server.counts().received), (1, received), "{protocol:?}");
    // The new connection, on which nothing went out, is kept.
    assert_eq!(call(server.url("/")).over(&transport).await.unwrap().status, 200);
    assert_eq!((server.counts().accepted, server.counts().requests), (2, 2), "{protocol:?}");
    true
}
