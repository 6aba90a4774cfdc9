//! Stopping in good order.

use std::time::Duration;

use redrive_server::{Limits, rest};
use tokio::net::TcpStream;

use crate::world::{Ask, Connection, World};

#[tokio::test]
async fn a_caller_that_waits_is_answered_with_the_task_as_it_is() {
    let mut world = World::start().await;
    let _held = world.target.hold();
    let mut connection = Connection::open(world.address).await;
    let mut kept = Connection::open(world.address).await;
    assert_eq!(kept.ask(Ask::get("/livez")).await.status, 200);
    let waiting = connection
        .ask(Ask::post("/retry-tasks", r#"{"targetUrl":"https://example.com/"}"#).header("prefer", "wait=30"));
    tokio::pin!(waiting);
    tokio::select! {
        answer = &mut waiting => panic!("{answer:?}"),
        () = world.clock.until_a_sleep_of(Duration::from_secs(30)) => {}
    }
    world.begin_shutdown();
    let answer = waiting.await;
    assert_eq!((answer.status, answer.json()["status"].as_str().unwrap()), (202, "IN_FLIGHT"));

    let address = world.address;
    world.stopped().await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
    assert!(kept.try_ask(Ask::get("/livez")).await.is_err());
}

#[tokio::test]
async fn a_request_that_does_not_finish_in_time_is_ended() {
    let options = rest::Options { drain_timeout: Duration::from_millis(1), ..rest::Options::default() };
    let world = World::with(Limits::default(), options).await;
    use tokio::io::AsyncWriteExt as _;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(b"POST /retry-tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{").await.unwrap();
    world.stopped().await.unwrap();
}

#[tokio::test]
async fn invalid_settings_do_not_start() {
    let options = rest::Options { max_connections: 0, ..rest::Options::default() };
    let world = World::with(Limits::default(), options).await;
    assert!(matches!(world.stopped().await, Err(rest::Error::Option(_))));
}
