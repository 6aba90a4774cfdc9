//! What requests and answers hold in memory.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use redrive_server::{Limits, rest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::world::{Ask, Plan, World, answer};

const MIB: usize = 1024 * 1024;
/// The budget of these tests: a connection may hold 2 MiB, and 4 MiB are for what is small.
const MOST: usize = 16 * MIB;

async fn world(write_timeout: Duration) -> World {
    let options = rest::Options { max_memory_bytes: MOST, write_timeout, ..rest::Options::default() };
    World::with(Limits::default(), options).await
}

/// A world with tasks that show about 2 MiB.
async fn with_large_tasks(write_timeout: Duration) -> World {
    let world = world(write_timeout).await;
    let value = "x".repeat(30 * 1024);
    for _ in 0..70 {
        world
            .submit(&format!(r#"{{"targetUrl":"https://a.test/","delayMs":60000,"headers":{{"a":"{value}"}}}}"#))
            .await;
    }
    world
}

/// A connection whose caller has little room for what it does not read.
async fn narrow(world: &World) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.connect(world.address).await.unwrap()
}

/// The status of the answer, and nothing more of it.
async fn status(stream: &mut TcpStream) -> u16 {
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.unwrap();
    std::str::from_utf8(&line[9..]).unwrap().parse().unwrap()
}

/// What is small is served whatever large requests and answers hold.
async fn small_requests_are_served(world: &World) {
    let document = format!(r#"{{"targetUrl":"https://a.test/","delayMs":60000,"body":"{}"}}"#, "x".repeat(450));
    assert_eq!(world.post("/retry-tasks", &document).await.status, 201);
    assert_eq!(world.get("/livez").await.status, 200);
    assert_eq!(world.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn pages_that_are_not_read_stay_within_the_budget() {
    let world = with_large_tasks(Duration::from_secs(3_600)).await;
    let mut callers = Vec::new();
    let mut refused = 0;
    for _ in 0..60 {
        let mut stream = narrow(&world).await;
        stream.write_all(b"GET /retry-tasks?limit=500 HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        match status(&mut stream).await {
            200 => callers.push(stream),
            503 => {
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                assert!(answer.contains("retry-after: 1\r\n") && answer.contains("/problems/unavailable"), "{answer}");
                assert!(answer.contains("--max-api-memory"), "{answer}");
                refused += 1;
            }
            other => panic!("{other}"),
        }
    }
    assert!(refused > 0 && callers.len() >= 8, "{refused} of 60 were refused");
    assert!(world.memory.held() > 8 * MIB && world.memory.peak() <= MOST, "{:?}", world.memory);
    small_requests_are_served(&world).await;
    assert!(world.memory.peak() <= MOST, "{:?}", world.memory);
    drop(callers);
    world.until_memory(|memory| memory.held() < 64 * 1024).await;
    assert_eq!(world.get("/retry-tasks?limit=500").await.status, 200);
}

#[tokio::test]
async fn batches_whose_last_byte_is_withheld_stay_within_the_budget() {
    let world = world(Duration::from_secs(3_600)).await;
    // With an eighth for its buffers it counts as 3/2 MiB.
    let length = 4 * MIB / 3 - 8 * 1024;
    let head = format!(
        "POST /retry-tasks/batch HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    let withheld = [head.as_bytes(), &vec![b' '; length - 1]].concat();
    let (address, withheld) = (world.address, &withheld);
    let send = || async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(withheld).await.unwrap();
        status(&mut stream).await
    };
    // Eight have room in what is not for small requests.
    let mut callers: FuturesUnordered<_> = (0..60).map(|_| send()).collect();
    for _ in 0..52 {
        assert_eq!(callers.next().await.unwrap(), 503);
    }
    assert!(world.memory.held() >= 8 * (length - 1), "{:?}", world.memory);
    small_requests_are_served(&world).await;
    let large = format!(r#"{{"tasks":[{{"targetUrl":"https://a.test/","body":"{}"}}]}}"#, "x".repeat(MIB / 2));
    let refused = world.post("/retry-tasks/batch", &large).await;
    refused.problem(503, "unavailable");
    assert_eq!((refused.header("retry-after"), refused.header("connection")), (Some("1"), Some("close")));
    assert!(world.memory.peak() <= MOST, "{:?}", world.memory);
    drop(callers);
    world.until_memory(|memory| memory.held() < 64 * 1024).await;
    assert_eq!(world.post("/retry-tasks/batch", &large).await.status, 200);
}

#[tokio::test]
async fn a_page_has_its_room_before_it_is_read() {
    let world = world(Duration::from_secs(3_600)).await;
    // With an eighth for its buffers it counts as 2 MiB.
    let length = 16 * MIB / 9 - 8 * 1024;
    let head = format!(
        "POST /retry-tasks/batch HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    let withheld = [head.as_bytes(), &vec![b' '; length - 1]].concat();
    let mut callers = Vec::new();
    for held in 1..=6 {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        stream.write_all(&withheld).await.unwrap();
        callers.push(stream);
        world.until_memory(|memory| memory.held() >= held * (length - 1)).await;
    }
    // It is not known yet that there is nothing to show.
    world.get("/retry-tasks?limit=500").await.problem(503, "unavailable");
    assert_eq!(world.get("/retry-tasks?limit=1").await.status, 200, "what can only be small has room");
    drop(callers);
    world.until_memory(|memory| memory.held() < 64 * 1024).await;
    assert_eq!(world.get("/retry-tasks?limit=500").await.status, 200);
}

#[tokio::test]
async fn what_is_only_announced_holds_nothing() {
    let world = world(Duration::from_secs(3_600)).await;
    let mut callers = Vec::new();
    for _ in 0..60 {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        let head = "POST /retry-tasks/batch HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 2000000\r\nexpect: 100-continue\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server has begun to read the body.
        assert_eq!(status(&mut stream).await, 100);
        callers.push(stream);
    }
    assert!(world.memory.peak() < MIB, "{:?}", world.memory);
}

#[tokio::test]
async fn a_request_larger_than_a_connection_may_hold_is_told_the_limit() {
    let world = world(Duration::from_secs(3_600)).await;
    let huge = " ".repeat(MOST / 8 + 1);
    let problem = world.post("/retry-tasks/batch", &huge).await.problem(413, "content-too-large");
    assert_eq!(problem["limitBytes"], MOST / 8);
}

async fn http2(world: &World) -> hyper::client::conn::http2::SendRequest<Empty<Bytes>> {
    let stream = TcpStream::connect(world.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let handshake = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(65_535)
        .initial_connection_window_size(65_535)
        .handshake(TokioIo::new(stream));
    let (sender, connection) = handshake.await.unwrap();
    // A connection that the server ends shows in the requests' own errors.
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    sender
}

fn list(world: &World) -> Request<Empty<Bytes>> {
    let uri = format!("http://{}/retry-tasks?limit=500", world.address);
    Request::get(uri).body(Empty::new()).unwrap()
}

#[tokio::test]
async fn one_http2_connection_holds_no_more_than_an_eighth() {
    let world = with_large_tasks(Duration::from_secs(3_600)).await;
    let mut sender = http2(&world).await;
    let mut unread = Vec::new();
    let mut refused = 0;
    for _ in 0..60 {
        let response = sender.send_request(list(&world)).await.unwrap();
        match response.status().as_u16() {
            200 => unread.push(response),
            503 => refused += 1,
            other => panic!("{other}"),
        }
    }
    assert!(!unread.is_empty() && unread.len() <= 2 && refused >= 58, "{} and {refused}", unread.len());
    assert!(world.memory.held() <= MOST / 8 + 128 * 1024, "{:?}", world.memory);
    small_requests_are_served(&world).await;
    // Others have their own share, and a caller that reads gets room again.
    assert_eq!(world.get("/retry-tasks?limit=500").await.status, 200);
    // Together: the connection's window is shared, and one that is not read holds up the other.
    let read = unread.into_iter().map(|response| response.into_body().collect());
    assert!(futures_util::future::join_all(read).await.iter().all(Result::is_ok));
    world.until_memory(|memory| memory.held() < 64 * 1024).await;
    assert_eq!(sender.send_request(list(&world)).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_cut_off() {
    let world = world(Duration::from_millis(100)).await;
    let body = vec![b'x'; 32 * MIB];
    let stored = world.ask(Ask::bytes("POST", "/blobs", &body)).await.json();
    let mut stream = narrow(&world).await;
    let path = format!("/blobs/{}", stored["bodyRef"].as_str().unwrap());
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await.unwrap();
    assert_eq!(status(&mut stream).await, 200);
    world.until_memory(|memory| memory.held() < 64 * 1024).await;
    let mut rest = Vec::new();
    // Whether it is closed or reset does not matter.
    stream.read_to_end(&mut rest).await.unwrap_or_default();
    assert!(rest.len() < body.len(), "{}", rest.len());
}

#[tokio::test]
async fn a_reader_gets_all_of_an_answer_larger_than_the_budget() {
    let world = world(Duration::from_secs(3_600)).await;
    let body = vec![b'x'; 32 * MIB];
    let stored = world.ask(Ask::bytes("POST", "/blobs", &body)).await.json();
    let path = format!("/blobs/{}", stored["bodyRef"].as_str().unwrap());
    assert_eq!(world.get(&path).await.body.len(), body.len());
    assert!(world.memory.peak() <= MOST, "{:?}", world.memory);
}

#[tokio::test]
async fn a_stream_that_is_not_read_ends_its_http2_connection() {
    let world = with_large_tasks(Duration::from_millis(100)).await;
    let mut sender = http2(&world).await;
    let unread = sender.send_request(list(&world)).await.unwrap();
    assert_eq!(unread.status(), 200);
    world.until_memory(|memory| memory.held() < 64 * 1024).await;
    assert!(unread.into_body().collect().await.is_err());
}

#[tokio::test]
async fn a_page_ends_at_its_bytes_and_leads_on() {
    let world = with_large_tasks(Duration::from_secs(3_600)).await;
    let (mut ids, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let answer = world.get(&format!("/retry-tasks?limit=500{cursor}")).await;
        assert!(answer.body.len() <= MIB + 1_024, "{}", answer.body.len());
        let list = answer.json();
        assert_eq!(list["counts"]["PENDING"], 70);
        ids.extend(list["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].as_str().unwrap().to_owned()));
        pages += 1;
        match list["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert!(ids.windows(2).all(|pair| pair[0] > pair[1]), "newest first, none twice");
    assert_eq!((ids.len(), pages), (70, 3));
}

#[tokio::test]
async fn long_names_are_cut_where_they_are_told() {
    let world = World::start().await;
    let name = "n".repeat(4 * MIB);
    let value = format!("\u{e4}{}", "v".repeat(MIB));
    for (document, status) in [
        (format!(r#"{{"targetUrl":"https://a.test/","{name}":1}}"#), 400),
        (format!(r#"{{"targetUrl":"https://a.test/","labels":{{"{name}":"x"}}}}"#), 422),
        (format!(r#"{{"targetUrl":"https://a.test/","policyId":"{value}"}}"#), 422),
        (format!(r#"{{"targetUrl":"{value}"}}"#), 422),
        (format!(r#"{{"targetUrl":"https://a.test/","dependency":"{value}","method":"{value}"}}"#), 422),
        (format!(r#"{{"targetUrl":"https://a.test/","policy":{{"jitterType":"{value}"}}}}"#), 400),
        (format!(r#"{{"targetUrl":"https://a.test/","delayMs":"{value}"}}"#), 400),
    ] {
        let answer = world.post("/retry-tasks", &document).await;
        assert_eq!(answer.status, status, "{}", &answer.text()[..answer.text().len().min(300)]);
        assert!(answer.body.len() < 4_096, "{} {}", answer.body.len(), &document[..60]);
    }
}

#[tokio::test]
async fn a_batch_of_tasks_that_have_ended_shows_a_megabyte_of_their_answers() {
    let world = World::start().await;
    let task = |key: usize| format!(r#"{{"targetUrl":"https://a.test/","idempotencyKey":"k{key}"}}"#);
    for key in 0..24 {
        world.target.plan(Plan::Answer(answer(200, "x".repeat(60 * 1024))));
        let id = world.submit(&task(key)).await;
        world.ended(&id).await;
    }
    let again: Vec<_> = (0..24).map(task).collect();
    let results = world.post("/retry-tasks/batch", &format!(r#"{{"tasks":[{}]}}"#, again.join(","))).await;
    assert!(results.body.len() < MIB + 64 * 1024, "{}", results.body.len());
    let results = results.json();
    let shown: Vec<bool> = results["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| {
            assert_eq!((&result["status"], &result["task"]["status"]), (&200.into(), &"SUCCEEDED".into()));
            result["task"].get("response").is_some()
        })
        .collect();
    assert_eq!(shown, (0..24).map(|key| key < 17).collect::<Vec<_>>());
}
