//! Who is let in when there is no room for another connection.

use std::time::Duration;

use redrive_server::{Limits, rest};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{Ask, Connection, World};

async fn with_places(max_connections: usize) -> World {
    World::with(Limits::default(), rest::Options { max_connections, ..rest::Options::default() }).await
}

async fn say(world: &World, said: &str) -> TcpStream {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(said.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn thousands_of_idle_connections_do_not_lock_out_new_ones() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let world = World::start().await;
    let most = rest::Options::default().max_connections;
    let mut idle = Vec::new();
    for _ in 0..most + 200 {
        idle.push(TcpStream::connect(world.address).await.unwrap());
    }
    for path in ["/livez", "/readyz"] {
        let within = tokio::time::timeout(Duration::from_secs(60), world.get(path));
        assert_eq!(within.await.unwrap().status, 200);
    }
    world.submit(r#"{"targetUrl":"https://a.test/"}"#).await;
    // The first to come had been idle the longest.
    assert_eq!(idle[0].read(&mut [0]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn slow_connections_do_not_lock_out_new_ones() {
    for said in [
        "",
        "GET /livez HTTP/1.1\r\nhost",
        "POST /retry-tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{",
        "PUT /retry-policies/a HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let world = with_places(4).await;
        let mut slow = Vec::new();
        for _ in 0..100 {
            slow.push(say(&world, said).await);
            let within = tokio::time::timeout(Duration::from_secs(60), world.get("/livez"));
            assert_eq!(within.await.unwrap().status, 200, "{said:?}");
            // The place was made for it, and is not one of those that are kept for health checks.
            assert_eq!(world.get("/retry-tasks").await.status, 200, "{said:?}");
        }
    }
}

#[tokio::test]
async fn a_kept_connection_gives_its_place_to_one_that_asks() {
    let world = with_places(1).await;
    let mut first = Connection::open(world.address).await;
    assert_eq!(first.ask(Ask::get("/livez")).await.status, 200);
    assert_eq!(world.get("/livez").await.status, 200);
    assert!(first.try_ask(Ask::get("/livez")).await.is_err());
}

#[tokio::test]
async fn health_checks_are_answered_while_every_place_is_worked_on() {
    let world = with_places(1).await;
    let _held = world.target.hold();
    let mut connection = Connection::open(world.address).await;
    let submission = Ask::post("/retry-tasks", r#"{"targetUrl":"https://a.test/"}"#).header("prefer", "wait=30");
    let waiting = connection.ask(submission);
    tokio::pin!(waiting);
    tokio::select! {
        answer = &mut waiting => panic!("{answer:?}"),
        () = world.clock.until_a_sleep_of(Duration::from_secs(30)) => {}
    }
    for path in ["/livez", "/readyz"] {
        assert_eq!(world.get(path).await.status, 200);
    }
    let refused = world.get("/retry-tasks").await;
    refused.problem(503, "unavailable");
    assert_eq!((refused.header("retry-after"), refused.header("connection")), (Some("1"), Some("close")));
    world.clock.advance(Duration::from_secs(30));
    assert_eq!(waiting.await.status, 202);
}
